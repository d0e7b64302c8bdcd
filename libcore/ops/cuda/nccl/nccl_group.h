#pragma once

#include <memory>

#include "libcore/ops/backend/device_group.h"

namespace megalith::cuda {

/// A communicator of NCCL for the backend's device, which starts and splits in the background. To be called
/// after open_nccl(). The functions of the result throw kComm with NCCL's words.
std::unique_ptr<DeviceGroup> start_nccl_group(const DeviceGroupStart&);

/// The id of a new communicator. Throws kComm.
std::string new_nccl_id();

}  // namespace megalith::cuda
