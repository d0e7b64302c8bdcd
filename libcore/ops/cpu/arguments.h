#pragma once

#include <algorithm>
#include <cstdint>

#include "libcore/ops/cpu/kernels.h"
#include "libcore/ops/kernel_arguments.h"
#include "libcore/tensor/row_positions.h"

/// What the kernels' arguments are made of besides: stretches of work, positions of rows.
namespace megalith::cpu {

/// Elements per piece of an element-wise op: tens of microseconds of work.
inline constexpr int64_t kPiece = 1 << 14;

/// Rows per piece of a row-wise op.
inline int64_t piece_rows(int64_t columns) {
  return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, columns));
}

inline RowSpans spans_of(const RowPositions& rows) {
  return {rows.first, rows.turn, rows.jump};
}

}  // namespace megalith::cpu
