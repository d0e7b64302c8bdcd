#pragma once

#include <memory>
#include <string>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/device_group.h"

namespace megalith {

// Groups of ranks over NCCL. They are in the CUDA plugin, which opens libnccl when the first of them is made.
// It is searched for where the plugin's other libraries are (cuda_plugin.h), then where the dynamic linker
// looks. These functions throw kDevice if the plugin or libnccl is missing or too old, kComm if NCCL reports
// an error.

/// The id of a new group, for DeviceGroupStart.
std::string new_nccl_id();
std::unique_ptr<DeviceGroup> start_nccl_group(const DeviceGroupStart&);
/// "2.28.9"
std::string nccl_version();
/// The number of CUDA devices that this process sees. Throws kDevice if there is no driver or no device.
int cuda_devices();
/// The device's address on its machine, which processes with other numbers for it share: "0000:1b:00.0".
std::string cuda_device_address(int device);
/// From now on the host waits for a CUDA backend's streams through `watch`, which must outlive them; null: it
/// waits for them as long as they take. Throws only when first called.
void set_device_watch(Backend&, DeviceWatch* watch);

}  // namespace megalith
