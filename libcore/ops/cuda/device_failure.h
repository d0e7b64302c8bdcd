#pragma once

#include <string_view>

#include "libcore/ops/cuda/runtime.h"

namespace megalith::cuda {

/// Throws what require_success() throws, for a status other than cudaSuccess.
[[noreturn]] void fail_with(cudaError_t status, std::string_view what);

/// Throws kDevice unless there are a driver that is new enough and a device with that number.
void require_device(int device);

}  // namespace megalith::cuda
