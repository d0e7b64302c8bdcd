#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// For each row of logits, the largest entry, and the sum of exp(entry - max), which cannot overflow. Only
/// the first `columns` columns count; the others pad the vocabulary.
struct SoftmaxStats {
  View max, sum_exp;  // [n] f32
  ConstView logits;   // [n, v/tp] f32|bf16|f16
  int64_t columns;    // number of columns of this rank's share that stand for real ids
  static constexpr const char* kName = "softmax_stats";
  void check() const;
  Cost cost() const;
};

/// sum_exp *= exp(from - to): a rank's sum, relative to its own maximum, becomes relative to the maximum of
/// all ranks, so that the ranks' sums can be added up.
struct SoftmaxRescale {
  View sum_exp;        // [n] f32
  ConstView from, to;  // [n] f32
  static constexpr const char* kName = "softmax_rescale";
  void check() const;
  Cost cost() const;
};

/// Computes `loss`, the negative log-likelihood of each token times its mask, and replaces `logits` by the
/// gradient of the loss times `scale` and `scale_at`. `max` and `sum_exp` come from SoftmaxStats and are
/// already reduced over the vocabulary's ranks (the vocabulary is divided as in Megatron's
/// vocab_parallel_cross_entropy). `loss` is not multiplied by the scales; only the target's rank writes it,
/// the others write 0.
struct CrossEntropy {
  View loss;    // [n] f32, nats; 0 if mask is 0 or another rank has the target
  View logits;  // [n, v/tp] f32|bf16|f16; on return the gradient, 0 where mask is 0 and from `columns` on
  ConstView max, sum_exp;  // [n] f32
  ConstView targets;       // [n] i32; ids outside of [first_id, first_id + columns) belong to other ranks
  int64_t columns;
  ConstView mask = {};  // [n] f32; empty: all ones
  float scale = 1;
  ConstView scale_at = {};  // [1] f32, a further factor; empty: 1
  bool want_grad = true;    // false: logits are not changed (evaluation)
  int32_t first_id = 0;     // the id of column 0
  static constexpr const char* kName = "cross_entropy";
  void check() const;
  Cost cost() const;
};

/// SoftmaxStats and CrossEntropy of a rank that has the whole vocabulary: reads the logits once.
struct SoftmaxLoss {
  View loss;          // [n] f32, as in CrossEntropy
  View logits;        // [n, v], as in CrossEntropy
  View max, sum_exp;  // [n] f32, as in SoftmaxStats
  ConstView targets;  // [n] i32; a row whose id is outside of [0, columns) has no loss
  int64_t columns;
  ConstView mask = {};  // [n] f32; empty: all ones
  float scale = 1;
  ConstView scale_at = {};  // [1] f32, a further factor; empty: 1
  bool want_grad = true;    // false: logits are not changed
  static constexpr const char* kName = "softmax_loss";
  /// The two ops with the same results, up to rounding. Defined here because CUDA's plugin does not
  /// contain loss.cpp.
  SoftmaxStats stats() const {
    return {.max = max, .sum_exp = sum_exp, .logits = logits, .columns = columns};
  }
  CrossEntropy cross_entropy() const {
    return {.loss = loss,
            .logits = logits,
            .max = max,
            .sum_exp = sum_exp,
            .targets = targets,
            .columns = columns,
            .mask = mask,
            .scale = scale,
            .scale_at = scale_at,
            .want_grad = want_grad};
  }
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
