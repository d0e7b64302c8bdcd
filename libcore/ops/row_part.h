#pragma once

#include <stdint.h>

namespace megalith {

/// A part of the rows of a tensor: rows [first, first + count) of every `of` consecutive rows. The heads of
/// the queries in a packed QKV [s, b, groups, q + 2, head] are rows [0, q) of every q + 2. Only fields, so
/// that the sources of the CPU's kernels may include it (ops/cpu/kernels/kernels.h); a kernel finds row i of
/// the part at i / count * of + first + i % count.
struct RowPart {
  int64_t first = 0, count = 1, of = 1;
};

}  // namespace megalith
