#pragma once

#include <memory>

#include "libcore/ops/backend/device_group.h"

namespace megalith::cuda {

/// A communicator of NCCL for the backend's device. It starts and splits without blocking. open_nccl() comes
/// first. Throws kComm with NCCL's words.
std::unique_ptr<DeviceGroup> start_nccl_group(const DeviceGroupStart&);

/// The id of a new communicator.
std::string new_nccl_id();

}  // namespace megalith::cuda
