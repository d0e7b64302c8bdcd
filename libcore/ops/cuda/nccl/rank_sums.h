#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libcore/ops/cuda/runtime.h"

namespace megalith::cuda {

enum class SumType { kF32, kBf16, kF16, kF64, kI32, kI64 };

/// The elements of several ranks, reduced as reduce_slice() of parallel/kernels_reduce.h does, bit for bit:
/// element by element in rank order, 16-bit types in fp32 with one rounding; a maximum is NaN if any element
/// is.
struct RankSum {
  const void* parts;  // [ranks, elements], in rank order
  int ranks;          // at least 1
  int64_t elements;
  SumType type;  // of `parts` and `out`
  bool max;      // the maximum, not the sum
  void* out;     // [elements]
};
/// Enqueues it on a stream of the current device. Throws kDevice.
void launch_rank_sum(cudaStream_t, const RankSum&);

}  // namespace megalith::cuda
