#pragma once

#include <cstdint>

#include "libcore/tensor/dtype.h"

namespace megalith {

/// Whether convert_elements() supports this pair: equal types, or two floating-point types.
bool convertible(DType from, DType to);

/// Copies n elements of host memory, rounding to nearest even if `to` is narrower. NaN stays NaN; values that
/// are too large become infinite. kInternal unless convertible().
void convert_elements(void* to, DType to_type, const void* from, DType from_type, int64_t n);

/// How many elements are NaN or infinite, and the number of the first one.
struct NotFinite {
  int64_t count = 0, first = 0;
};

/// Counts such numbers among n elements of host memory; none in a type that cannot hold them. Every converted
/// weight is examined, which takes 5 to 8 % of a conversion from and to the page cache without --check. A
/// check of a few tokens misses rows that they do not use, and no bad number must pass silently.
NotFinite find_not_finite(const void* elements, DType type, int64_t n);

}  // namespace megalith
