#include "libcore/train/devices/rank_device.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/ops/backend/nccl_plugin.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

/// The device that a rank takes.
struct RankDevice {
  std::string machine, host;
  int place = 0;  // among the ranks of the machine
  int devices = 0;
  std::string address;  // empty if there are too few devices

  template <class V>
  void members(V&& visit) {
    visit(machine, host, place, devices, address);
  }
};

std::string on_host(const RankDevice& rank) {
  return rank.host.empty() ? std::string() : " on " + rank.host;
}

void require_own_devices(const std::vector<RankDevice>& ranks) {
  std::map<std::pair<std::string, std::string>, size_t> taken;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankDevice& one = ranks[rank];
    if (one.address.empty())
      fail(ErrorKind::kDevice, "cuda: rank ", rank, on_host(one), " has no device: it is number ", one.place,
           " of its machine's ranks, and there are ", one.devices,
           " devices, numbered from 0; start one rank for each device (--nproc gpu), or choose --device cpu");
    const auto [former, is_new] = taken.try_emplace({one.machine, one.address}, rank);
    if (!is_new)
      fail(ErrorKind::kDevice, "cuda: ranks ", former->second, " and ", rank, on_host(one),
           " have the same device, ", one.address,
           "; each needs its own: start one rank for each device, and let CUDA_VISIBLE_DEVICES name others "
           "for each "
           "process, or none");
  }
}

}  // namespace

int device_of_rank(Communicator& world, const DevicePlace& place) {
  RankDevice mine{.machine = place.machine,
                  .host = place.host,
                  .place = place.number,
                  .devices = cuda_devices(),
                  .address = {}};
  const int device = mine.devices == 1 && place.own_process ? 0 : mine.place;
  if (device < mine.devices) mine.address = cuda_device_address(device);
  require_own_devices(exchange_values(world, mine));
  return device;
}

}  // namespace megalith
