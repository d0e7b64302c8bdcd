#pragma once

// Includes the CUDA runtime. The tests set MEGALITH_CUDA_RUNTIME to another header, which runs the kernels on
// the host.
#ifdef MEGALITH_CUDA_RUNTIME
#include MEGALITH_CUDA_RUNTIME
#else
#include <cuda_runtime.h>
#endif

namespace megalith::cuda {

/// Throws kDevice "cuda: WHAT: the runtime's message" unless status is cudaSuccess.
void require_success(cudaError_t status, const char* what);

}  // namespace megalith::cuda
