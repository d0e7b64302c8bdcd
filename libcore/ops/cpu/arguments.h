#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "libcore/ops/cpu/kernels.h"
#include "libcore/ops/dropout.h"
#include "libcore/tensor/view.h"

/// What the kernels' arguments are made of: places in tensors, stretches of work, keys of dropout.
namespace megalith::cpu {

inline constexpr int64_t kPiece =
    1 << 14;  // elements per piece of an element-wise op: tens of microseconds of work

/// Rows per piece of a row-wise op.
inline int64_t piece_rows(int64_t columns) {
  return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, columns));
}

/// The mask of an op with that key; all zero: nothing is dropped.
inline MaskKey mask_key(const DropoutKey& key) {
  if (key.p == 0) return {0, 0, 0, 0};
  const double keep = 1.0 - static_cast<double>(key.p);
  return {.seed = key.seed,
          .layer_site = key.layer * DropoutKey::kSites + key.site,
          .last_kept = static_cast<uint32_t>(std::ceil(keep * 0x1p32) - 1),
          .scale = static_cast<float>(1.0 / keep)};
}

/// Null where nothing is dropped.
inline const int64_t* samples_of(const DropoutKey& key) {
  return key.p == 0 ? nullptr : key.samples.as<int64_t>();
}

inline RowSpans spans_of(const RowPositions& rows) {
  return {rows.first, rows.turn, rows.jump};
}

/// The address of an element of a dense tensor.
template <class V>
auto* at(const V& view, int64_t element) {
  using Byte = std::conditional_t<std::is_same_v<V, View>, std::byte, const std::byte>;
  return static_cast<Byte*>(view.data) + element * static_cast<int64_t>(size_of(view.dtype));
}

}  // namespace megalith::cpu
