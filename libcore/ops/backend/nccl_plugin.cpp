#include "libcore/ops/backend/nccl_plugin.h"

#include "libcore/base/plugins/plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

/// The plugin, with libnccl open.
const Plugin& nccl_plugin() {
  static const Plugin kPlugin = [] {
    Plugin plugin = cuda_plugin();
    plugin.function<void(const std::string&)>("megalith_open_nccl")(cuda_library_path("libnccl.so.2"));
    return plugin;
  }();
  return kPlugin;
}

}  // namespace

std::string new_nccl_id() {
  std::string id;
  nccl_plugin().function<void(std::string&)>("megalith_new_nccl_id")(id);
  return id;
}

std::unique_ptr<DeviceGroup> start_nccl_group(const DeviceGroupStart& start) {
  return std::unique_ptr<DeviceGroup>(
      nccl_plugin().function<DeviceGroup*(const DeviceGroupStart&)>("megalith_start_nccl_group")(start));
}

std::string nccl_version() {
  std::string version;
  nccl_plugin().function<void(std::string&)>("megalith_nccl_version")(version);
  return version;
}

}  // namespace megalith
