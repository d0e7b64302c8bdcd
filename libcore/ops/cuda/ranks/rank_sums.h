#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libcore/ops/cuda/runtime.h"

/// The elements of several ranks, reduced as reduce_slice() of parallel/kernels_reduce.h does, bit for bit:
/// element by element in rank order, 16-bit types in fp32 with one rounding; a maximum is NaN if any element
/// is. The functions enqueue that on a stream of the current device. They throw kDevice.
namespace megalith::cuda {

enum class SumType { kF32, kBf16, kF16, kF64, kI32, kI64 };

/// What is reduced.
struct RankSum {
  int ranks;  // at least 1
  int64_t elements;
  SumType type;
  bool max;  // the maximum, not the sum
};

/// Where the elements of the ranks lie behind each other.
struct JoinedParts {
  const void* parts;  // [ranks, elements], in rank order
  void* out;          // [elements]
};
void launch_rank_sum(cudaStream_t, const RankSum&, const JoinedParts&);

/// Where each rank has its own tensor.
struct ScatteredParts {
  static constexpr int kMax = 64;
  const void* from[kMax];  // of each rank
  void* to[kMax];          // places of the result; they may be among `from`
  int results;             // so many
};
void launch_rank_sum(cudaStream_t, const RankSum&, const ScatteredParts&);

}  // namespace megalith::cuda
