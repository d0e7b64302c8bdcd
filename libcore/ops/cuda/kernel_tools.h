#pragma once

#include <type_traits>

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

/// The blocks of a one-dimensional grid, their threads, and bytes of dynamic shared memory.
struct Grid {
  int64_t blocks;
  int threads = kThreads;
  size_t shared = 0;
};

/// Enqueues a grid; does nothing if it has no blocks.
template <class... Params, class... Args>
void launch(cudaStream_t stream, const Grid& grid, void (*kernel)(Params...), const Args&... args) {
  // A block gets 48 KiB without asking for it. The kernel's static arrays count among them; they take less
  // than 16 KiB in every kernel that also has dynamic memory.
  constexpr size_t kAlwaysGranted = 32 << 10;
  if (grid.blocks <= 0) return;
  if (grid.blocks > kMaxGrid) refuse_grid(grid.blocks);
  if (grid.shared > kAlwaysGranted)
    require_success(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(grid.shared)),
        "shared memory of a kernel");
#if defined(__CUDACC__)
  kernel<<<static_cast<unsigned>(grid.blocks), grid.threads, grid.shared, stream>>>(args...);
#else
  // By value: the kernel may run after this returns.
  run_grid(stream, grid.blocks, grid.threads, grid.shared,
           [kernel, ... copies = args] { kernel(copies...); });
#endif
  require_success(cudaGetLastError(), "kernel launch");
}
template <int kBlockThreads = kThreads, class... Params, class... Args>
void launch(cudaStream_t stream, int64_t blocks, size_t shared, void (*kernel)(Params...),
            const Args&... args) {
  launch(stream, Grid{blocks, kBlockThreads, shared}, kernel, args...);
}

/// Calls f with a value of the element type: float, Bf16 or Half.
template <class F>
void with_storage(Storage storage, const F& f) {
  switch (storage) {
    case Storage::kF32:
      return f(float{});
    case Storage::kBf16:
      return f(Bf16{});
    case Storage::kF16:
      return f(Half{});
  }
}

// These test the storage type at run time: for kernels whose loads and stores are few beside their other
// work, so that fewer kernels are compiled.
__device__ inline float load(Storage storage, const void* data, int64_t i) {
  if (storage == Storage::kF32) return static_cast<const float*>(data)[i];
  if (storage == Storage::kBf16) return widen(static_cast<const Bf16*>(data)[i]);
  return widen(static_cast<const Half*>(data)[i]);
}
__device__ inline void store(Storage storage, void* data, int64_t i, float value) {
  if (storage == Storage::kF32)
    static_cast<float*>(data)[i] = value;
  else if (storage == Storage::kBf16)
    static_cast<Bf16*>(data)[i] = narrow<Bf16>(value);
  else
    static_cast<Half*>(data)[i] = narrow<Half>(value);
}

constexpr int64_t blocks_for(int64_t items, int64_t per_block) {
  return (items + per_block - 1) / per_block;
}

constexpr unsigned kWholeWarp = 0xffffffffu;

/// Returns the sum over the warp's threads in every thread.
template <class T>
__device__ T warp_sum(T value) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(kWholeWarp, value, apart);
  return value;
}

/// Returns the sum over the block's threads in every thread; the order of summation depends only on the
/// block's size. All threads of the block must call it.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T warp_sums[32];
  value = warp_sum(value);
  __syncthreads();  // threads may still be reading the sums of an earlier call
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += warp_sums[warp];
  return sum;
}

__device__ inline float block_max(float value) {
  __shared__ float warp_maxima[32];
  for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, apart));
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
/// The type by which the bytes of a vector are read and written: nvcc would split a load of eight 16-bit
/// elements.
template <size_t kBytes>
struct VectorBits;
template <>
struct VectorBits<8> {
  using Type = uint2;
};
template <>
struct VectorBits<16> {
  using Type = uint4;
};
/// A vector of one element may be anywhere.
template <int kWide, class T>
__device__ Vector<kWide, T> vector_at(const T* place) {
  if constexpr (kWide == 1) {
    return {{*place}};
  } else {
    const auto bits = *reinterpret_cast<const typename VectorBits<kWide * sizeof(T)>::Type*>(place);
    Vector<kWide, T> vector;
    memcpy(&vector, &bits, sizeof vector);
    return vector;
  }
}
template <int kWide, class T>
__device__ void put_vector(T* place, const Vector<kWide, T>& vector) {
  if constexpr (kWide == 1) {
    *place = vector.at[0];
  } else {
    typename VectorBits<kWide * sizeof(T)>::Type bits;
    memcpy(&bits, &vector, sizeof bits);
    *reinterpret_cast<decltype(bits)*>(place) = bits;
  }
}
/// Whether 16 bytes can be read or written at each of these addresses. A null pointer counts as one.
template <class... Data>
bool aligned16(const Data*... data) {
  return ((reinterpret_cast<uintptr_t>(data) % 16 == 0) && ...);
}

/// Two numbers as adjacent elements of T, which is Bf16 or Half, the first in the low half.
template <class T>
__device__ uint32_t narrow_pair(float first, float second) {
#if defined(__CUDACC__)
  uint32_t pair;
  if constexpr (std::is_same_v<T, Half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return narrow<T>(first).bits | static_cast<uint32_t>(narrow<T>(second).bits) << 16;
#endif
}

constexpr float kLog2E = 1.44269504f;  // e^x is 2^(x kLog2E)
/// 2^x with a relative error of about 2^-22; 0 for minus infinity.
__device__ inline float power_of_two(float x) {
#if defined(__CUDACC__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

/// The factor of a loss's gradient.
__device__ __forceinline__ float loss_scale(const LossArgs& a) {
  return a.scale_at == nullptr ? a.scale : a.scale * *a.scale_at;
}

}  // namespace megalith::cuda
