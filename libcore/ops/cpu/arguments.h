#pragma once

#include <algorithm>
#include <cstdint>

#include "libcore/ops/backend/kernel_arguments.h"
#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/tensor/row_positions.h"

/// Computes arguments of CPU kernels: ranges of work, positions of rows.
namespace megalith::cpu {

/// Elements per range of an element-wise op: tens of microseconds of work.
inline constexpr int64_t kRange = 1 << 14;

/// Rows per range of a row-wise op.
inline int64_t range_rows(int64_t columns) {
  return std::max<int64_t>(1, kRange / std::max<int64_t>(1, columns));
}

inline RowSpans spans_of(const RowPositions& rows) {
  return {rows.first, rows.split, rows.jump};
}

}  // namespace megalith::cpu
