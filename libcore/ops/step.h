#pragma once

#include "libcore/ops/op.h"
#include "libcore/ops/step_scalars.h"

namespace megalith {

/// out[0] += scale * scale_at * (sum of x), in fp64, summed in a fixed order that depends only on the size.
/// Used to add a microbatch's loss to the step's loss on the stream, so that the host need not wait.
struct ScaledSum {
  View out;     // [1] f64
  ConstView x;  // any shape, f32
  double scale;
  ConstView scale_at = {};  // [1] f32; empty: 1
  static constexpr const char* kName = "scaled_sum";
  void check() const;
  Cost cost() const;
};

/// Turns the step's loss and sum of squares, both complete, into what AdamW reads: norm = sqrt(sum of
/// squares) / loss scale; skip = 1 unless loss and norm are finite; grad scale = clip_factor(norm, max_norm)
/// / loss scale, 0 if skipped. If kSkip, which is then still that of the step before, is not 0, the learning
/// rate and the corrections become the other ones.
struct DecideStep {
  View scalars;     // [StepScalar::kCount] f64; kNorm, kGradScale, kSkip and those others are written
  double max_norm;  // for clipping (see clip_factor); 0: none
  static constexpr const char* kName = "decide_step";
  void check() const;
  Cost cost() const;
};

/// A view [1] f64 of one of the scalars.
View step_scalar(const View& scalars, int which);

}  // namespace megalith
