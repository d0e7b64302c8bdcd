#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Elements in host memory that are reduced over ranks.
struct SliceReduction {
  DType dtype;
  Reduce reduce;
  int64_t elements;
  std::vector<const std::byte*> from;  // each rank's elements, in rank order
  std::vector<std::byte*> to;          // each of these gets the result; they may be among `from`
};

/// Whether reduce_slice() accepts this type: fp32, bf16, fp16, fp64, i32 and i64.
bool can_reduce(DType);

/// Reduces element by element in the order of `from`, so that results repeat bit for bit. 16-bit types are
/// added in fp32 and rounded once, to nearest even; integers wrap. A maximum is NaN if any element is.
void reduce_slice(const SliceReduction&);

}  // namespace megalith
