#pragma once

#include "libcore/config/model_config.h"
#include "libcore/model/norm.h"

namespace megalith {

/// The number of rows in each block of the logits of `rows` rows with `row_bytes` bytes each, where a block
/// has at most `most_bytes`, but at least one row. There are as few blocks as possible. All have equal size,
/// except that the last may be a little shorter. Measured with GPT-2 124M in bf16: 4 blocks of 1024 rows take
/// 12 % less processor time and a quarter less memory than 3 blocks of 1335 rows and one of 91.
int64_t logits_block_rows(int64_t rows, int64_t row_bytes, int64_t most_bytes);

/// Final norm, logits and loss. In training and evaluation, logits are computed in ctx.scratch in blocks of
/// rows of at most VocabularyForm::logits_bytes, so that the whole tensor [n, V] never exists.
class Head {
 public:
  Head(ParamTable&, const TensorSplit&, const ModelConfig&);

  /// d(objective)/d(sum of token losses), the product of both.
  struct GradScale {
    float factor;
    ConstView at = {};  // [1] f32; empty: 1
  };
  struct Targets {
    ConstView labels;  // [s, b] i32
    ConstView mask;    // [s, b] f32; empty: all ones
    GradScale grad_scale;
    View gaps = {};  // [s, b] f32, written unless ctx.training: see Microbatch; empty: not wanted
  };
  struct Saved {
    ConstView x;  // [s', b, h]
    Norm::Saved norm;
    View dnormed;  // [s', b, h]: gradient of the norm's output; forward() computes it
  };
  Saved make_saved(const Ctx&, Arena&, ConstView x) const;

  /// loss [s, b] f32. In training, also adds to the weight's gradient and fills saved.dnormed, since both
  /// need the logits, which forward() does not keep.
  void forward(const Ctx&, View loss, const Targets&, const Saved&) const;
  /// dx: gradient of x, overwritten.
  void backward(const Ctx&, View dx, const Saved&) const;
  /// logits [n, V] f32 of x [n, h], without those of padding rows. With several tensor-parallel ranks, each
  /// gets the logits of all.
  void logits(const Ctx&, View logits, ConstView x) const;

  /// The log-likelihoods of targets, one for each row, and the statistics of that row's softmax.
  struct Scores {
    View loss;          // [n] f32: the negative log-likelihood, in nats
    View max, sum_exp;  // [n] f32, as in SoftmaxStats
    ConstView targets;  // [n] i32, in [0, vocabulary())
  };
  /// Scores of the rows of x [n, h]. The logits [n, V] are in ctx.scratch meanwhile.
  void scores(const Ctx&, const Scores&, ConstView x) const;

  int64_t vocabulary() const { return weight_->global[0]; }

 private:
  struct RowBlock {
    ConstView x;  // [rows, h] normed
    View dx;      // [rows, h]
    View loss;    // [rows]
    ConstView labels, mask;
    View gaps;  // [rows]; may be empty
    RowBlock rows(int64_t begin, int64_t end) const;
  };
  /// The exchanges around the logits: their input comes, and the sums of its gradient leave, beside products.
  struct Exchanges {
    const Region::Late& entry;
    Region::Exit& exit;
    int64_t batch;  // b: a row of the sequence is that many rows of a block
    RowBlock all;   // of which blocks are ranges
  };
  /// Logits of the first ids of this rank's part of the table, as many as `logits` has columns.
  void project(const Ctx&, View logits, ConstView normed) const;
  /// Divides the logits by --logits-scaling.
  void scale(const Ctx&, View logits) const;
  /// Rows [begin, end) of exchanges.all.
  void row_block(const Ctx&, Exchanges&, int64_t begin, int64_t end, const GradScale&) const;
  void multiply(const Ctx&, View logits, const Exchanges&, int64_t begin) const;
  void unmultiply(const Ctx&, ConstView logits, Exchanges&, int64_t begin) const;
  /// The same as `whole` where each tensor-parallel rank has a share of the vocabulary.
  void share_of_loss(const Ctx&, const SoftmaxLoss& whole) const;
  /// Fills `gaps` with the difference between each row's largest logit and its target's, which must be known.
  void fill_gaps(const Ctx&, View gaps, const SoftmaxLoss& whole) const;
  /// Turns a rank's softmax statistics, which cover its share of the vocabulary, into those of the whole
  /// vocabulary: the maximum over the ranks, and the sum of the ranks' sums after rescaling them to that
  /// maximum.
  void reduce(const Ctx&, View max, View sum_exp) const;
  /// The number of rows of a block. For a sequence shorter than the model's seq_length, blocks are no larger
  /// than for a full one.
  int64_t block_rows(const Ctx&, const Shape& rows, DType) const;

  Norm norm_;
  Param* weight_;
  int64_t seq_length_, logits_bytes_;
  float logits_factor_;  // 1 / --logits-scaling
};

}  // namespace megalith
