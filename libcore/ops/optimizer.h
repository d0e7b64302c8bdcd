#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// out[0] += sum of squares of x, in fp64, summed in a fixed order that depends on the size alone (bitwise
/// repeatable).
struct SumSquares {
  View out;     // [1] f64
  ConstView x;  // any shape, f32|bf16
  static constexpr const char* kName = "sum_squares";
  void check() const;
  Cost cost() const;
};

/// AdamW (Loshchilov & Hutter) on a flat range, as torch.optim.AdamW computes it: decoupled decay first, bias
/// corrections in fp64 on the host. `grad` is multiplied by grad_scale first (clipping, 1/loss scale,
/// 1/microbatches).
struct AdamW {
  View master;      // [n] f32, updated
  View m, v;        // [n] f32, updated
  ConstView grad;   // [n] f32
  View value = {};  // [n] bf16|f16: master rounded; empty: the model uses master itself
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;  // from 1 on
  float grad_scale = 1;
  static constexpr const char* kName = "adamw";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
