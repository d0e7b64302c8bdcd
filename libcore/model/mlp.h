#pragma once

#include "libcore/config/model_config.h"
#include "libcore/model/linear.h"

namespace megalith {

/// fc2(activation(fc1(x))), on this rank's part of the ffn width.
class Mlp {
 public:
  Mlp(ParamTable&, const TensorSplit&, const ModelConfig&, int layer);

  struct Saved {
    View fc1;  // [s, b, f/tp] or, with SwiGLU, [s, b, 2 f/tp]: input of the activation
    View act;  // [s, b, f/tp]: output of the activation; empty if fc2 is frozen, so that no gradient needs it
  };
  Saved make_saved(Arena&, int64_t s, int64_t b, DType) const;

  /// x has the rows that this rank has outside the tensor region; so has the result, the sum over the ranks
  /// of the output. It is in y [s, b, h], which holds this rank's summand before.
  View forward(const Ctx&, View y, ConstView x, const Saved&) const;
  /// dy and x have all rows. Returns the gradient of this rank's rows outside the tensor region, which is in
  /// dx [s, b, h]. Also overwrites the tensors of Saved.
  View backward(const Ctx&, View dx, const Region::Late& dy, const Region::Late& x, const Saved&) const;
  /// Whether backward() reads x.
  bool keeps_input() const { return fc1_.keeps_input(); }

 private:
  /// Whether the activation is one that products have as an epilogue.
  bool is_gelu() const { return !gated_ && activation_ == ActivationFunction::kGeluTanh; }
  void activate(const Ctx&, View y, ConstView x) const;
  View make_activation(Arena&, ConstView fc1) const;
  /// Returns the gradient of fc1's output `fc1`, given dy, the gradient of the activation's output. With
  /// SwiGLU, the result overwrites `fc1`; otherwise, it overwrites dy.
  View activate_grad(const Ctx&, View dy, View fc1) const;
  View rows(View) const;  // viewed as [n, ffn]

  bool gated_;  // SwiGLU
  ActivationFunction activation_;
  int64_t ffn_;  // this rank's part of the ffn width
  Linear fc1_, fc2_;
};

}  // namespace megalith
