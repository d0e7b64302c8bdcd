#pragma once

#include <string_view>

#include "libcore/base/error.h"
#include "libcore/ops/cuda/runtime.h"

namespace megalith::cuda {

/// What the user is told after a status of the CUDA runtime: the kind of error, hence the exit code, and what
/// to do. docs/cuda.md has the table.
struct DeviceFailure {
  ErrorKind kind;
  std::string_view remedy;
};
DeviceFailure failure_of(cudaError_t status);

/// Throws as require_success() does, for a status other than cudaSuccess.
[[noreturn]] void fail_with(cudaError_t status, std::string_view what);

/// Throws kDevice unless there are a driver that is new enough and a device with that number.
void require_device(int device);

}  // namespace megalith::cuda
