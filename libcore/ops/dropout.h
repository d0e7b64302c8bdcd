#pragma once

#include "libcore/ops/op.h"
#include "libcore/tensor/row_positions.h"

namespace megalith {

/// Where a dropout mask is taken: the mask is a pure function of (seed, global sample number, layer, site,
/// position, column), so it is the same under every layout, and after a resume. Element kept when its 32
/// random bits are below (1 - p) 2^32; scaled by 1/(1-p). Bits: word `column % 4` of philox({column / 4,
/// position, layer * 16 + site, low half of sample}, {seed, high half of sample}). In attention, column =
/// head * s_total + key position, s_total those of the whole sequence.
struct DropoutKey {
  float p = 0;  // probability of dropping; 0: no dropout, nothing else is read
  uint32_t seed = 0;
  uint32_t layer = 0;  // global layer number, 0 for the embedding
  /// Which mask of a layer, so that each is drawn from numbers of its own: 0 embedding, 1 attention
  /// probabilities, 2 attention output, 3 mlp output; adapters of LoRA: 4 to 6 QKV, 7 attention's projection,
  /// 8 and 9 fc1, 10 fc2.
  uint32_t site = 0;
  ConstView samples = {};  // [b] i64 on the op's device: global sample numbers
  /// Which positions the rows have, because context and sequence parallel ranks hold some of them.
  RowPositions rows = {};
  /// In attention: the global number of head 0, because tensor parallel ranks hold a share.
  int64_t first_head = 0;
  /// Elsewhere: the global number of column 0, for the same reason; only the CPU has it.
  int64_t first_column = 0;

  static constexpr uint32_t kSites = 16;
  /// Throws kInternal, in the name of `op`, unless 0 <= p < 1 and there is one sample per sequence of the
  /// batch.
  void check(const char* op, int64_t batch) const;
};

/// y = dropout(x) (+ residual). Its gradient is the same op on dy without residual.
struct Dropout {
  View y;       // [s, b, h]; may be x's memory
  ConstView x;  // [s, b, h]
  DropoutKey key;
  ConstView residual = {};  // [s, b, h]
  static constexpr const char* kName = "dropout";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
