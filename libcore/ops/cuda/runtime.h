#pragma once

// The CUDA runtime. The tests name another header here, which runs the kernels on the host.
#ifdef MEGALITH_CUDA_RUNTIME
#include MEGALITH_CUDA_RUNTIME
#else
#include <cuda_runtime.h>
#endif

namespace megalith::cuda {

/// Throws kDevice "cuda: WHAT: the runtime's message" unless status is cudaSuccess.
void require_success(cudaError_t status, const char* what);

}  // namespace megalith::cuda
