#include "libcore/ops/cuda/kernel_tools.h"
#include "libcore/ops/cuda/nccl/rank_sums.h"

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
__global__ void rank_sum(RankSum sum) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= sum.elements) return;
  const T* const parts = static_cast<const T*>(sum.parts);
  auto total = load(parts[i]);
  for (int rank = 1; rank < sum.ranks; ++rank) {
    const auto next = load(parts[rank * sum.elements + i]);
    if (!sum.max)
      total = sum_of(total, next);
    else if (next > total || next != next)
      total = next;
  }
  store(static_cast<T*>(sum.out) + i, total);
}

template <class T>
void launch_as(cudaStream_t stream, const RankSum& sum) {
  launch(stream, blocks_for(sum.elements, kThreads), 0, rank_sum<T>, sum);
}

}  // namespace

void launch_rank_sum(cudaStream_t stream, const RankSum& sum) {
  switch (sum.type) {
    case SumType::kF32:
      return launch_as<float>(stream, sum);
    case SumType::kBf16:
      return launch_as<Bf16>(stream, sum);
    case SumType::kF16:
      return launch_as<Half>(stream, sum);
    case SumType::kF64:
      return launch_as<double>(stream, sum);
    case SumType::kI32:
      return launch_as<int32_t>(stream, sum);
    case SumType::kI64:
      return launch_as<int64_t>(stream, sum);
  }
}

}  // namespace megalith::cuda
