#pragma once

// The tests' emulated plugin finds tests/emulator/include here, which runs the kernels on the host.
#include <cuda_runtime.h>

namespace megalith::cuda {

/// Throws kDevice "cuda: WHAT: the runtime's message" unless status is cudaSuccess.
void require_success(cudaError_t status, const char* what);

}  // namespace megalith::cuda
