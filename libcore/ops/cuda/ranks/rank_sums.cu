#include "libcore/ops/cuda/kernel_tools.h"
#include "libcore/ops/cuda/ranks/rank_sums.h"

namespace megalith::cuda {
namespace {

// Elements are reduced in their own type, 16-bit types in fp32.
__device__ inline float load(Bf16 value) {
  return widen(value);
}
__device__ inline float load(Half value) {
  return widen(value);
}
template <class T>
__device__ T load(T value) {
  return value;
}

template <class T>
__device__ void store(T* to, T value) {
  *to = value;
}
__device__ inline void store(Bf16* to, float value) {
  *to = narrow<Bf16>(value);
}
__device__ inline void store(Half* to, float value) {
  *to = narrow<Half>(value);
}

template <class T>
__device__ T sum_of(T a, T b) {
  return a + b;
}
// Integers wrap.
__device__ inline int32_t sum_of(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
__device__ inline int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class T>
__device__ inline const T* elements_of(const JoinedParts& parts, int rank, int64_t elements) {
  return static_cast<const T*>(parts.parts) + rank * elements;
}
template <class T>
__device__ inline const T* elements_of(const ScatteredParts& parts, int rank, int64_t) {
  return static_cast<const T*>(parts.from[rank]);
}

template <class T, class Sum>
__device__ void put(const JoinedParts& parts, int64_t i, Sum total) {
  store(static_cast<T*>(parts.out) + i, total);
}
template <class T, class Sum>
__device__ void put(const ScatteredParts& parts, int64_t i, Sum total) {
  for (int result = 0; result < parts.results; ++result) store(static_cast<T*>(parts.to[result]) + i, total);
}

template <class T, class Parts>
__global__ void rank_sum(RankSum sum, Parts parts) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= sum.elements) return;
  auto total = load(elements_of<T>(parts, 0, sum.elements)[i]);
  for (int rank = 1; rank < sum.ranks; ++rank) {
    const auto next = load(elements_of<T>(parts, rank, sum.elements)[i]);
    if (!sum.max)
      total = sum_of(total, next);
    else if (next > total || next != next)
      total = next;
  }
  put<T>(parts, i, total);
}

template <class Parts>
void launch_sum(cudaStream_t stream, const RankSum& sum, const Parts& parts) {
  const auto launch_as = [&](auto element) {
    launch(stream, blocks_for(sum.elements, kThreads), 0, rank_sum<decltype(element), Parts>, sum, parts);
  };
  switch (sum.type) {
    case SumType::kF32:
      return launch_as(float{});
    case SumType::kBf16:
      return launch_as(Bf16{});
    case SumType::kF16:
      return launch_as(Half{});
    case SumType::kF64:
      return launch_as(double{});
    case SumType::kI32:
      return launch_as(int32_t{});
    case SumType::kI64:
      return launch_as(int64_t{});
  }
}

}  // namespace

void launch_rank_sum(cudaStream_t stream, const RankSum& sum, const JoinedParts& parts) {
  launch_sum(stream, sum, parts);
}

void launch_rank_sum(cudaStream_t stream, const RankSum& sum, const ScatteredParts& parts) {
  launch_sum(stream, sum, parts);
}

}  // namespace megalith::cuda
