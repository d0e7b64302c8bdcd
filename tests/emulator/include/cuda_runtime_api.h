#pragma once

#include <cuda_runtime.h>

/// Functions of CUDA's runtime that only the host's side of the backend calls. The kernels do not see them.

// NOLINTBEGIN: names and signatures are CUDA's
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device);
/// Every priority is alike here.
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaEventQuery(cudaEvent_t event);
// NOLINTEND
