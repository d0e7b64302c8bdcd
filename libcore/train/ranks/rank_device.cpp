#include "libcore/train/ranks/rank_device.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/ops/backend/nccl_plugin.h"
#include "libcore/ops/backend/shared_device.h"
#include "libcore/parallel/devices/device_comm.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/rank_communicators.h"
#include "libcore/train/ranks/nccl_report.h"

namespace megalith {
namespace {

/// The device that a rank takes.
struct TakenDevice {
  std::string machine, host;
  int place = 0;  // among the ranks of the machine
  int devices = 0;
  std::string address;  // empty if there are too few devices

  template <class V>
  void members(V&& visit) {
    visit(machine, host, place, devices, address);
  }
};

std::string on_host(const TakenDevice& rank) {
  return rank.host.empty() ? std::string() : " on " + rank.host;
}

[[noreturn]] void fail_without_device(size_t rank, const TakenDevice& one) {
  fail(ErrorKind::kDevice, "cuda: rank ", rank, on_host(one), " has no device: it is number ", one.place,
       " of its machine's ranks, and there ",
       one.devices == 1 ? "is 1 device" : concat("are ", one.devices, " devices"),
       ", numbered from 0; start one rank for each device (--nproc gpu), or choose --device cpu; threads "
       "(--nproc) may share a device that CUDA_VISIBLE_DEVICES names alone");
}

void require_own_devices(const std::vector<TakenDevice>& ranks) {
  std::map<std::pair<std::string, std::string>, size_t> taken;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const TakenDevice& one = ranks[rank];
    if (one.address.empty()) fail_without_device(rank, one);
    const auto [former, is_new] = taken.try_emplace({one.machine, one.address}, rank);
    if (!is_new)
      fail(ErrorKind::kDevice, "cuda: ranks ", former->second, " and ", rank, on_host(one),
           " have the same device, ", one.address,
           "; each needs its own: start one rank for each device, and let CUDA_VISIBLE_DEVICES name others "
           "for each process, or leave it unset");
  }
}

/// The number of this rank's device.
int device_of_rank(Communicator& world, const DevicePlace& place) {
  TakenDevice mine{.machine = place.machine,
                   .host = place.host,
                   .place = place.number,
                   .devices = cuda_devices(),
                   .address = {}};
  const int device = mine.devices == 1 && place.own_process ? 0 : mine.place;
  if (device < mine.devices) mine.address = cuda_device_address(device);
  require_own_devices(exchange_values(world, mine));
  return device;
}

RankDevice open_shared_device(int ranks) {
  log(" > ", ranks, " ranks share the device ", cuda_device_address(0),
      ": sums are in rank order, and speeds say nothing of several GPUs");
  return {.backend = make_cuda_backend(0), .sharers = ranks};
}

}  // namespace

bool threads_share_device() {
  const char* const named = std::getenv("CUDA_VISIBLE_DEVICES");
  if (named == nullptr || *named == '\0') return false;
  // CUDA shows only those of a list that come before the first one that is missing, perhaps one alone.
  const bool is_list = std::strchr(named, ',') != nullptr;
  return !is_list && cuda_devices() == 1;
}

int ranks_of_first_device(int ranks) {
  if (threads_share_device()) {
    if (ranks > kMaxSharers)
      fail(ErrorKind::kUsage, "cuda: ", ranks, " ranks would share the device ", cuda_device_address(0),
           ", of which at most ", kMaxSharers, " can; lower --nproc");
    return ranks;
  }
  if (const int devices = cuda_devices(); ranks > devices)
    fail_without_device(static_cast<size_t>(devices),
                        {.machine = {}, .host = {}, .place = devices, .devices = devices, .address = {}});
  return 1;
}

RankDevice open_rank_device(Communicator& world, const DevicePlace& place, const PretrainConfig& config) {
  const std::string& device = config.train.device;
  if (device != "cuda" || world.size() == 1) return {.backend = make_backend(device)};
  if (!place.own_process && ranks_of_first_device(world.size()) > 1) return open_shared_device(world.size());
  RankDevice out{.backend = make_cuda_backend(device_of_rank(world, place))};
  out.world =
      make_device_comm(world, *out.backend,
                       {.in_rank_order = config.parallel.rank_order, .rings = closes_ring(config.parallel)});
  if (world.rank() == 0) {
    log(nccl_line(nccl_version()));
    if (const std::string set = nccl_variables_line(config.parallel.rank_order); !set.empty()) log(set);
  }
  return out;
}

}  // namespace megalith
