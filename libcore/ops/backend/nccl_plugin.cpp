#include "libcore/ops/backend/nccl_plugin.h"

#include <filesystem>
#include <system_error>

#include "libcore/base/plugins/plugin.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

constexpr char kLibrary[] = "libnccl.so.2";

/// The library's path, or its name alone, which the dynamic linker then finds or does not.
std::string path_of_nccl() {
  std::error_code error;
  for (const std::string& folder : cuda_library_folders())
    if (const auto path = std::filesystem::path(folder) / kLibrary; std::filesystem::exists(path, error))
      return path.string();
  return kLibrary;
}

/// The plugin, with libnccl open.
const Plugin& nccl_plugin() {
  static const Plugin kPlugin = [] {
    Plugin plugin = cuda_plugin();
    plugin.function<void(const std::string&)>("megalith_open_nccl")(path_of_nccl());
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
