#pragma once

// The tests' emulated plugin finds tests/emulator/include here, which runs the kernels on the host.
#include <cuda_runtime.h>

namespace megalith::cuda {

/// Throws "cuda: WHAT: the runtime's message; what to do" unless status is cudaSuccess: kDevice, or kInternal
/// if a kernel or a call of ours is at fault (docs/cuda.md has the table).
void require_success(cudaError_t status, const char* what);

}  // namespace megalith::cuda
