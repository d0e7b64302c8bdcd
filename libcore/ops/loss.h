#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// Per row of logits its max entry and the sum of exp(entry - max), which cannot overflow, over the
/// first `columns` columns: the padding of a vocabulary takes no part.
struct SoftmaxStats {
  View max, sum_exp;  // [n] f32
  ConstView logits;   // [n, v/tp] f32|bf16|f16
  int64_t columns;    // of this rank's share that are true ids
  static constexpr const char* kName = "softmax_stats";
  void check() const;
  Cost cost() const;
};

/// sum_exp *= exp(from - to): a rank's sum, taken from its own maximum, becomes relative to the max of
/// all ranks, so that they may be added up.
struct SoftmaxRescale {
  View sum_exp;        // [n] f32
  ConstView from, to;  // [n] f32
  static constexpr const char* kName = "softmax_rescale";
  void check() const;
  Cost cost() const;
};

/// Negative log-likelihood of each token times its mask, and in place the gradient with respect to the logits
/// of that, times `scale`. `max` and `sum_exp` come from SoftmaxStats, already reduced over the vocabulary's
/// ranks (same split as Megatron's vocab_parallel_cross_entropy). `loss` has no `scale`; it is written by the
/// target's rank only, 0 elsewhere.
struct CrossEntropy {
  View loss;    // [n] f32, nats; 0 where mask is 0 or the target is another rank's
  View logits;  // [n, v/tp] f32|bf16|f16; on return scale * mask * d(loss)/d(logits), 0 from `columns` on
  ConstView max, sum_exp;  // [n] f32
  ConstView targets;       // [n] i32, ids; one outside of [first_id, first_id + columns) is another rank's
  int64_t columns;
  ConstView mask = {};  // [n] f32; empty: all ones
  float scale = 1;
  bool want_grad = true;  // false: logits are left alone (evaluation)
  int32_t first_id = 0;   // of column 0
  static constexpr const char* kName = "cross_entropy";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
