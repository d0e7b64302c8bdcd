#pragma once

#include <memory>
#include <string>

#include "libcore/ops/backend/device_group.h"

namespace megalith {

// Groups of ranks over NCCL. They are in the CUDA plugin, which opens libnccl when the first of them is made.
// It is searched for where the plugin's other libraries are (cuda_plugin.h), then where the dynamic linker
// looks. These functions throw kDevice if the plugin or libnccl is missing or too old, kComm if NCCL reports
// an error.

/// The id of a new group, for DeviceGroupStart.
std::string new_nccl_id();
/// Begins to start a group, and does not wait for its other ranks: DeviceGroup::await_start() does.
std::unique_ptr<DeviceGroup> start_nccl_group(const DeviceGroupStart&);
/// "2.28.9"
std::string nccl_version();

}  // namespace megalith
