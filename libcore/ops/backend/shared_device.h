#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/tensor/device.h"

namespace megalith {

/// The most ranks that may share a device.
inline constexpr int kMaxSharers = 64;

/// Elements in the memory of a device that are reduced over the ranks of one process that share it.
struct SharedReduction {
  DType dtype;       // one that can_reduce() of parallel/kernels_reduce.h accepts
  bool max = false;  // the maximum, not the sum
  int64_t elements = 0;
  std::vector<const std::byte*> from;  // each rank's elements, in rank order; at most kMaxSharers
  std::vector<std::byte*> to;          // each of these gets the result; they may be among `from`
};

/// Whether the tensors of the stream's work are in a CUDA device's memory.
bool is_on_cuda(const Stream&);

/// Enqueues a reduction with the bits of reduce_slice() (parallel/kernels_reduce.h) on a stream of a CUDA
/// backend. Throws kDevice.
void reduce_on_cuda(Stream&, const SharedReduction&);

}  // namespace megalith
