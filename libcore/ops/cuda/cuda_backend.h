#pragma once

#include <memory>

#include "libcore/ops/backend/backend.h"

namespace megalith::cuda {

/// Every op on one device, numbered as the CUDA runtime does. Ops enqueue and return; they may be called from
/// several threads, each with its own stream. Throws kDevice when the device does not answer.
std::unique_ptr<Backend> make_backend(int device);

}  // namespace megalith::cuda
