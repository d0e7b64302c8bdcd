#pragma once

#include "libcore/config/model_config.h"
#include "libcore/model/norm.h"

namespace megalith {

/// Final norm, logits and loss. Logits are computed in blocks of rows (of at most kLogitsBytes, in
/// ctx.scratch), so that [n, V] never exists as a whole.
class Head {
 public:
  static constexpr int64_t kLogitsBytes = int64_t{128} << 20;

  Head(ParamTable&, const TensorSplit&, const ModelConfig&);

  struct Targets {
    ConstView labels;  // [s, b] i32
    ConstView mask;    // [s, b] f32; empty: all ones
    float grad_scale;
  };
  struct Saved {
    ConstView x;  // [s', b, h]
    Norm::Saved norm;
    View dnormed;  // [s', b, h]: gradient of the norm's output, already computed in forward
  };
  Saved make_saved(const Ctx&, Arena&, ConstView x) const;

  /// loss [s, b] f32. In training it also adds to the weight's gradient and fills saved.dnormed, since the
  /// logits that both need are discarded afterwards.
  void forward(const Ctx&, View loss, const Targets&, const Saved&) const;
  /// dx: gradient of x, overwritten.
  void backward(const Ctx&, View dx, const Saved&) const;
  /// logits [n, V] f32 of x [n, h].
  void logits(const Ctx&, View logits, ConstView x) const;

  int64_t vocabulary() const { return weight_->global[0]; }

 private:
  struct RowBlock {
    ConstView x;  // [rows, h] normed
    View dx;      // [rows, h]
    View loss;    // [rows]
    ConstView labels, mask;
    RowBlock rows(int64_t begin, int64_t end) const;
  };
  void row_block(const Ctx&, const RowBlock&, float grad_scale) const;
  /// Turns a rank's softmax statistics, which cover its share of the vocabulary, into those of the whole
  /// vocabulary: the largest maximum, and sums rescaled to it so that they can be added up.
  void reduce(const Ctx&, View max, View sum_exp) const;
  /// The number of rows of a block. There are as few blocks as possible, all equal except the last, which may
  /// be a little shorter: 4 x 1024 rows of GPT-2 124M in bf16 take 12 % less processor time than 3 x 1335 and
  /// 91, and a quarter less memory. Micro-batches shorter than the model's do not take larger blocks than a
  /// full one.
  int64_t block_rows(const Ctx&, const Shape& rows, DType) const;

  Norm norm_;
  Param* weight_;
  int64_t seq_length_;
};

}  // namespace megalith
