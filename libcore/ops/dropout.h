#pragma once

#include "libcore/ops/op.h"
#include "libcore/tensor/row_positions.h"

namespace megalith {

/// Identifies a dropout mask. The mask is a pure function of (seed, global sample number, layer, site,
/// position, column), so it is the same in every layout and after a resume. An element is kept if its 32
/// random bits are below (1 - p) 2^32, and is scaled by 1/(1-p). Bits: word `column % 4` of philox({column /
/// 4, position, layer * 16 + site, low half of sample}, {seed, high half of sample}). In attention, column =
/// head * s_total + key position, where s_total is the length of the whole sequence.
struct DropoutKey {
  float p = 0;  // probability of dropping; 0: no dropout, and nothing else is read
  uint32_t seed = 0;
  uint32_t layer = 0;  // global layer number, 0 for the embedding
  /// Number of the mask within its layer, so that each mask has its own random numbers: 0 embedding, 1
  /// attention probabilities, 2 attention output, 3 mlp output; LoRA adapters: 4 to 6 QKV, 7 attention's
  /// projection, 8 and 9 fc1, 10 fc2.
  uint32_t site = 0;
  ConstView samples = {};  // [b] i64 on the op's device: global sample numbers
  /// The positions of the rows: context-parallel and sequence-parallel ranks hold only some positions.
  RowPositions rows = {};
  /// In attention: the global number of this rank's head 0, since tensor-parallel ranks hold a share of the
  /// heads.
  int64_t first_head = 0;
  /// In Dropout: the global number of this rank's column 0.
  int64_t first_column = 0;

  static constexpr uint32_t kSites = 16;
  /// Throws kInternal in the name of `op` unless 0 <= p < 1 and there is one sample number per sequence of
  /// the batch.
  void check(const char* op, int64_t batch) const;
};

/// y = dropout(x) (+ residual). Its gradient is the same op on dy without residual.
struct Dropout {
  View y;       // [s, b, h]; may share x's memory
  ConstView x;  // [s, b, h]
  DropoutKey key;
  ConstView residual = {};  // [s, b, h]
  static constexpr const char* kName = "dropout";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
