#pragma once

#include <memory>

#include "libcore/ops/backend/backend.h"
#include "libcore/threads/last_wait.h"

namespace megalith::cuda {

/// A backend that runs every op on one device, numbered as in the CUDA runtime. Ops enqueue and return;
/// several threads may call them, each with its own stream. `waits` bounds the waits of
/// destructors. Throws kDevice if the device does not respond.
std::unique_ptr<Backend> make_backend(int device, const LastWaits& waits);

/// The bytes that a run can allocate on a device: what is free, less 32 MiB for what the driver itself takes
/// later. Throws kDevice.
size_t memory_left(int device);

}  // namespace megalith::cuda
