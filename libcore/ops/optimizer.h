#pragma once

#include "libcore/ops/op.h"
#include "libcore/ops/step_scalars.h"

namespace megalith {

/// out[0] += sum of squares of x, in fp64. The order of summation depends only on the size, so that results
/// are reproducible bit for bit.
struct SumSquares {
  View out;     // [1] f64
  ConstView x;  // any shape, f32|bf16|f16
  static constexpr const char* kName = "sum_squares";
  void check() const;
  Cost cost() const;
};

/// AdamW (Loshchilov & Hutter) on a flat range, as torch.optim.AdamW computes it: decoupled decay first,
/// rates in fp64. `grad` is first multiplied by the scalar kGradScale. If kSkip is set, nothing is changed.
/// The scalars are read in the stream's order, so an op that writes them, such as DecideStep, may precede it
/// without a wait.
struct AdamW {
  View master;        // [n] f32, updated
  View m;             // [n] f32|bf16, updated; in bf16 rounded to nearest even after master has used it
  View v;             // [n] f32, updated
  ConstView grad;     // [n] f32
  View value = {};    // [n] bf16|f16: master rounded; empty: the model uses master itself
  ConstView scalars;  // [StepScalar::kCount] f64: learning rate, bias corrections, grad scale, skip
  double beta1, beta2, eps, weight_decay;
  double rate = 1;  // factor on the learning rate
  static constexpr const char* kName = "adamw";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
