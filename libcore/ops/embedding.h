#pragma once

#include "libcore/ops/op.h"
#include "libcore/tensor/row_positions.h"

namespace megalith {

/// y[s, b] = table[ids[s, b] - first_id] (+ positions[rows.at(s) - starts[s, b]]). Ids outside [first_id,
/// first_id + v), which belong to other ranks, give zeros.
struct Embedding {
  View y;                    // [s, b, h]; on the CPU also fp32 from bf16 and fp16 tables
  ConstView ids;             // [s, b] i32
  ConstView table;           // [v, h]
  ConstView positions = {};  // [max, h]; empty: none
  RowPositions rows = {};    // read only if `positions` is given
  int32_t first_id = 0;
  ConstView starts = {};  // [s, b] i32, as in Rope; empty: all 0
  static constexpr const char* kName = "embedding";
  void check() const;
  Cost cost() const;
};

/// Adds the rows of dy to rows of dtable and dpositions, in dy's order, so that results are reproducible bit
/// for bit.
struct EmbeddingGrad {
  View dtable;             // [v, h] f32
  View dpositions;         // [max, h] f32; empty: none
  ConstView dy;            // [s, b, h]
  ConstView ids;           // [s, b] i32
  RowPositions rows = {};  // read only if `dpositions` is given
  int32_t first_id = 0;
  ConstView starts = {};  // [s, b] i32, as in Embedding
  static constexpr const char* kName = "embedding_grad";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
