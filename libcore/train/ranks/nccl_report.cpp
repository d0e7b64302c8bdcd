#include "libcore/train/ranks/nccl_report.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/launch/socket.h"
#include "libcore/train/ranks/nccl_log.h"

namespace megalith {
namespace {

/// The variables that choose algorithms, how they divide a tensor, or the paths between devices. Each of
/// these decides at which rank a sum begins.
constexpr std::string_view kOrderOfSums[] = {
    "ALGO",           "PROTO",        "MIN_NCHANNELS",  "MAX_NCHANNELS", "MIN_NRINGS",
    "MAX_NRINGS",     "MIN_CTAS",     "MAX_CTAS",       "NTHREADS",      "LL128_NTHREADS",
    "BUFFSIZE",       "LL_BUFFSIZE",  "LL128_BUFFSIZE", "NVLS_ENABLE",   "NVLS_NCHANNELS",
    "COLLNET_ENABLE", "MNNVL_ENABLE", "PAT_ENABLE",     "TUNER_PLUGIN",  "TUNER_CONFIG_FILE",
    "TOPO_FILE",      "GRAPH_FILE",   "CROSS_NIC",      "P2P_DISABLE",   "P2P_LEVEL",
    "SHM_DISABLE",    "NET",          "NET_PLUGIN",     "IB_DISABLE",    "IB_HCA"};

std::vector<std::string> infiniband_devices(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string interfaces_here() {
  try {
    const std::vector<std::string> all = outward_addresses();
    return all.empty() ? "none but the loopback" : join(all, ", ");
  } catch (const Error& error) {
    return concat("not known (", error.what(), ')');
  }
}

}  // namespace

std::string nccl_line(const std::string& version, const std::filesystem::path& infiniband) {
  const std::vector<std::string> devices = infiniband_devices(infiniband);
  return concat(" > NCCL ", version, "; network interfaces here: ", interfaces_here(),
                devices.empty() ? "" : "; InfiniBand: ", join(devices, ", "),
                kept_nccl_log() ? "; its connections are named after the first step"
                                : "; its own log (NCCL_DEBUG=INFO) names its connections");
}

std::string nccl_variables_line(bool in_rank_order) {
  std::vector<std::string> set, order;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry), name = text.substr(0, text.find('='));
    const bool of_nccl = name.starts_with("NCCL_");
    if (!of_nccl && name != "CUDA_DEVICE_MAX_CONNECTIONS" && name != "CUDA_MODULE_LOADING") continue;
    if (is_of_kept_nccl_log(std::string(name))) continue;
    set.emplace_back(text);
    if (of_nccl && std::ranges::find(kOrderOfSums, name.substr(5)) != std::end(kOrderOfSums))
      order.emplace_back(name);
  }
  if (set.empty()) return {};
  std::sort(set.begin(), set.end());
  std::sort(order.begin(), order.end());
  const bool changes = !in_rank_order && !order.empty();
  return concat(" > variables for NCCL: ", join(set, ", "),
                changes ? concat("; ", join(order, ", "), " may change the order of sums") : std::string());
}

}  // namespace megalith
