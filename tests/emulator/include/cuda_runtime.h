#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "tests/emulator/block.h"
#include "tests/emulator/matrices.h"

/// The part of the CUDA runtime that libcore/ops/cuda uses, on the host, for tests on machines without a
/// device. Memory is closed to the host (../memory.h), streams run late (../streams.h), and the blocks of a
/// kernel run one after the other (../block.h). Finds wrong maths and indices, barriers that not all threads
/// reach, missing barriers, events that were forgotten, and host code that takes device memory for its own;
/// no fault that shows only on hardware.

// NOLINTBEGIN: names, signatures and macros are CUDA's
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

/// Those of the running thread; one block runs at a time.
extern megalith::emulator::KernelIndex threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() {
  megalith::emulator::EmulatedBlock::running().wait();
}
inline void __syncwarp() {
  megalith::emulator::EmulatedBlock::running().wait_for_warp();
}
inline int __syncthreads_or(bool value) {
  return megalith::emulator::EmulatedBlock::running().any(value);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int apart) {
  auto& block = megalith::emulator::EmulatedBlock::running();
  return block.exchange(value, block.lane() ^ static_cast<unsigned>(apart));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return megalith::emulator::EmulatedBlock::running().exchange(value, static_cast<unsigned>(lane) % 32);
}

/// Special functions, which the device counts. tests/CMakeLists.txt includes this header before all
/// others.
#define expf(x) megalith::emulator::EmulatedBlock::running().note_special(::expf(x))
#define exp2f(x) megalith::emulator::EmulatedBlock::running().note_special(::exp2f(x))
#define logf(x) megalith::emulator::EmulatedBlock::running().note_special(::logf(x))
#define sqrtf(x) megalith::emulator::EmulatedBlock::running().note_special(::sqrtf(x))
#define erfcf(x) megalith::emulator::EmulatedBlock::running().note_special(::erfcf(x))

/// One load or store each, also for the compiler.
typedef unsigned uint2 __attribute__((vector_size(8), may_alias));
typedef unsigned uint4 __attribute__((vector_size(16), may_alias));

#define CUDART_VERSION 13000
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
  cudaErrorUnknown = 999
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
/// Some of what the runtime knows of a device.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount, l2CacheSize, ECCEnabled;
};
enum cudaDeviceAttr { cudaDevAttrClockRate = 13, cudaDevAttrMemoryClockRate = 36 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
using cudaGraph_t = struct EmulatedGraph*;
using cudaGraphExec_t = struct EmulatedGraphExec*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemGetInfo(size_t* left, size_t* all);
cudaError_t cudaMalloc(void** block, size_t bytes);
cudaError_t cudaFree(void* block);
cudaError_t cudaMallocHost(void** block, size_t bytes);
cudaError_t cudaFreeHost(void* block);
constexpr unsigned cudaHostRegisterDefault = 0;
cudaError_t cudaHostRegister(void* block, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* block);
cudaError_t cudaMemset(void* block, int value, size_t bytes);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
/// Capture and replay (../graphs.h).
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*work)(void*), void* data);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
/// Compares the clocks of the events' streams (../streams.h).
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);
/// Allows 99 KiB of shared memory per block, as every device of compute capability 8.0 or later does; 8.6 and
/// 8.9 allow no more.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int bytes);

namespace megalith::cuda {

inline float* dynamic_shared() {
  return emulator::EmulatedBlock::running().shared();
}
/// In place of <<<blocks, threads, shared, stream>>>: enqueues calls of `kernel`, one for each thread.
void run_grid(cudaStream_t stream, int64_t blocks, int threads, size_t shared, std::function<void()> kernel);

}  // namespace megalith::cuda
// NOLINTEND
