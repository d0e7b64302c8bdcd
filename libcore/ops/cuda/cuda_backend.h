#pragma once

#include <memory>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/device_facts.h"
#include "libcore/ops/backend/device_memory.h"
#include "libcore/threads/last_wait.h"

namespace megalith::cuda {

/// A backend that runs every op on one device, numbered as in the CUDA runtime. Ops enqueue and return;
/// several threads may call them, each with its own stream. `waits` bounds the waits of
/// destructors. Throws kDevice if the device does not respond.
std::unique_ptr<Backend> make_backend(int device, const LastWaits& waits);

/// The memory of a device. Throws kDevice.
DeviceMemory memory_of(int device);
/// Throws kDevice.
DeviceFacts facts_of(int device);

}  // namespace megalith::cuda
