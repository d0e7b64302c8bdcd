#pragma once

#include "libcore/ops/dropout.h"
#include "libcore/ops/op.h"
#include "libcore/ops/row_part.h"

namespace megalith {

/// How many of `rows` rows belong to the part.
constexpr int64_t rows_taken(const RowPart& part, int64_t rows) {
  return rows / part.of * part.count;
}

/// y = (x - mean) / sqrt(var + eps) * w + b over the last axis; with `residual`, dropout(x) + residual is
/// stored in `sum`, rounded, and normalized. With `part`, only these rows of x are read and only these of y
/// written; m is their number, and n without it.
struct LayerNorm {
  View y;                     // [n, h]
  ConstView x;                // [n, h]
  ConstView w, b;             // [h]
  View mean = {}, rstd = {};  // [m] f32, kept for LayerNormGrad; empty: not kept
  ConstView residual = {};    // [n, h]
  View sum = {};              // [n, h]; required with residual; may share x's memory
  DropoutKey dropout = {};    // only with residual; x is then [s, b, h]
  float eps = 1e-5f;
  RowPart part = {};  // not with a residual
  static constexpr const char* kName = "layer_norm";
  void check() const;
  Cost cost() const;
};

/// The gradients of LayerNorm. dx is overwritten, with `add` included; dw and db are added to. With `part`,
/// only these rows are read and written.
struct LayerNormGrad {
  View dx;               // [n, h]; may share dy's or add's memory
  View dw, db;           // [h] f32, added to; empty: not wanted (frozen)
  ConstView dy;          // [n, h]
  ConstView x;           // [n, h] what was normalized (LayerNorm's sum if it had a residual)
  ConstView w;           // [h]
  ConstView mean, rstd;  // [m] f32
  ConstView add = {};    // [n, h] gradient that reaches x through the residual path
  RowPart part = {};
  static constexpr const char* kName = "layer_norm_grad";
  void check() const;
  Cost cost() const;
};

/// y = x / sqrt(mean(x^2) + eps) * w over the last axis; residual, sum, dropout and part as in LayerNorm.
struct RmsNorm {
  View y;                   // [n, h]
  ConstView x;              // [n, h]
  ConstView w;              // [h]
  View rstd = {};           // [m] f32, kept for RmsNormGrad; empty: not kept
  ConstView residual = {};  // [n, h]
  View sum = {};            // [n, h]
  DropoutKey dropout = {};
  float eps = 1e-5f;
  RowPart part = {};
  static constexpr const char* kName = "rms_norm";
  void check() const;
  Cost cost() const;
};

struct RmsNormGrad {
  View dx;             // [n, h]; may share dy's or add's memory
  View dw;             // [h] f32, added to; empty: not wanted
  ConstView dy;        // [n, h]
  ConstView x;         // [n, h] what was normalized
  ConstView w;         // [h]
  ConstView rstd;      // [m] f32
  ConstView add = {};  // [n, h]
  RowPart part = {};
  static constexpr const char* kName = "rms_norm_grad";
  void check() const;
  Cost cost() const;
};

/// What a norm of all heads together needs to know of each row of a packed QKV: a sum over the row's query
/// heads, and one over its key heads; of x^2 or, with `d`, of d x w. Ranks that share the heads add up their
/// sums.
struct HeadSums {
  View sums;           // [2, s * b] f32, overwritten: of the queries, of the keys
  ConstView x;         // [s, b, groups, r + 2, head]
  ConstView d = {};    // [s, b, groups, r + 2, head]
  ConstView q_w = {};  // [groups * r * head], with d
  ConstView k_w = {};  // [groups * head], with d
  static constexpr const char* kName = "head_sums";
  void check() const;
  Cost cost() const;
};

/// RmsNorm over all query heads of a row together, and over all its key heads (OLMo 2's norms of queries and
/// keys): y = x / sqrt(square / width + eps) * w. Values are copied.
struct HeadsNorm {
  View y;               // [s, b, groups, r + 2, head]; may be x's memory
  ConstView x;          // [s, b, groups, r + 2, head]
  ConstView q_w;        // [groups * r * head]
  ConstView k_w;        // [groups * head]
  ConstView squares;    // [2, s * b] f32: HeadSums of x
  int64_t q_width = 0;  // the elements that a sum of `squares` is of, on all ranks
  int64_t k_width = 0;
  float eps = 1e-5f;
  static constexpr const char* kName = "heads_norm";
  void check() const;
  Cost cost() const;
};

/// The gradients of HeadsNorm.
struct HeadsNormGrad {
  View d;              // [s, b, groups, r + 2, head]: gradient of y; on return, of x
  View dq_w, dk_w;     // as q_w and k_w, f32, added to; empty: not wanted
  ConstView x;         // [s, b, groups, r + 2, head]
  ConstView q_w, k_w;  // as in HeadsNorm
  ConstView squares;   // [2, s * b] f32: HeadSums of x
  ConstView dots;      // [2, s * b] f32: HeadSums of x and d
  int64_t q_width = 0, k_width = 0;
  float eps = 1e-5f;
  static constexpr const char* kName = "heads_norm_grad";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
