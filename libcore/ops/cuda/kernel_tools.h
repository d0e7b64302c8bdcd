#pragma once

#include "libcore/ops/cuda/kernels.h"

/// What the .cu files share: launching, reductions within a block, 16-byte vectors.
namespace megalith::cuda {

constexpr int kThreads = 256;  // threads per block, unless a kernel's launch says otherwise

/// Placed before a loop, MEGALITH_UNROLL makes nvcc unroll it completely, MEGALITH_UNROLL_2 by two, and
/// MEGALITH_UNROLL_1 not at all.
#if defined(__CUDACC__)
#define MEGALITH_UNROLL_1 _Pragma("unroll 1")
#define MEGALITH_UNROLL _Pragma("unroll")
#define MEGALITH_UNROLL_2 _Pragma("unroll 2")
#else
#define MEGALITH_UNROLL_1
#define MEGALITH_UNROLL
#define MEGALITH_UNROLL_2
#endif

/// The block's dynamic shared memory as an array of floats.
#if defined(__CUDACC__)
#define MEGALITH_DYNAMIC_SHARED(name) extern __shared__ __align__(16) float name[]
#else
#define MEGALITH_DYNAMIC_SHARED(name) float* const name = dynamic_shared()
#endif

/// Enqueues a one-dimensional grid with `shared` bytes of dynamic shared memory; does nothing if `blocks` is
/// 0.
template <int kBlockThreads = kThreads, class... Params, class... Args>
void launch(cudaStream_t stream, int64_t blocks, size_t shared, void (*kernel)(Params...),
            const Args&... args) {
  constexpr size_t kAlwaysGranted = 48 << 10;
  if (blocks <= 0) return;
  if (blocks > kMaxGrid) refuse_grid(blocks);
  if (shared > kAlwaysGranted)
    require_success(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
        "shared memory of a kernel");
#if defined(__CUDACC__)
  kernel<<<static_cast<unsigned>(blocks), kBlockThreads, shared, stream>>>(args...);
#else
  // By value: the kernel may run after this returns.
  run_grid(stream, blocks, kBlockThreads, shared, [kernel, ... copies = args] { kernel(copies...); });
#endif
  require_success(cudaGetLastError(), "kernel launch");
}

/// Calls f with a value of the activations' element type: float or Bf16.
template <class F>
void with_activation(Storage storage, const F& f) {
  if (storage == Storage::kF32)
    f(float{});
  else
    f(Bf16{});
}
template <class F>
void with_storage(Storage storage, const F& f) {
  if (storage == Storage::kF16)
    f(Half{});
  else
    with_activation(storage, f);
}

constexpr int64_t blocks_for(int64_t items, int64_t per_block) {
  return (items + per_block - 1) / per_block;
}

/// Returns the sum over the block's threads in every thread; the order of summation depends only on the
/// block's size. All threads of the block must call it.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T warp_sums[32];
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
  __syncthreads();  // threads may still be reading the sums of an earlier call
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += warp_sums[warp];
  return sum;
}

__device__ inline float block_max(float value) {
  __shared__ float warp_maxima[32];
  for (int apart = 16; apart > 0; apart /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
  __syncthreads();
  if (threadIdx.x % 32 == 0) warp_maxima[threadIdx.x / 32] = value;
  __syncthreads();
  float max = warp_maxima[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) max = fmaxf(max, warp_maxima[warp]);
  return max;
}

/// Adjacent elements that one instruction reads or writes.
template <int kWide, class T>
struct alignas(kWide * sizeof(T)) Vector {
  T at[kWide];
};
template <int kWide, class T>
__device__ Vector<kWide, T> vector_at(const T* place) {
  return *reinterpret_cast<const Vector<kWide, T>*>(place);
}

}  // namespace megalith::cuda
