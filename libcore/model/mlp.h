#pragma once

#include "libcore/config/model_config.h"
#include "libcore/model/linear.h"

namespace megalith {

/// fc2(activation(fc1(x))), on this rank's part of the ffn width.
class Mlp {
 public:
  Mlp(ParamTable&, const TensorSplit&, const ModelConfig&, int layer);

  struct Saved {
    View fc1;  // [s, b, f/tp], SwiGLU [s, b, 2 f/tp]: before the activation
    View act;  // [s, b, f/tp]: after it; empty if no gradient needs it (a frozen fc2)
  };
  Saved make_saved(Arena&, int64_t s, int64_t b, DType) const;

  void forward(const Ctx&, View y, ConstView x, const Saved&) const;  // y: this rank's summand, [s, b, h]
  /// dx: this rank's summand, overwritten. Overwrites what was saved.
  void backward(const Ctx&, View dx, ConstView dy, ConstView x, const Saved&) const;
  /// Whether backward() reads x.
  bool keeps_input() const { return fc1_.keeps_input(); }

 private:
  void activate(const Ctx&, View y, ConstView x) const;
  View make_activation(Arena&, ConstView fc1) const;
  /// Computes the gradient of fc1 from dy, the gradient of the activation, and fc1, in the memory of one of
  /// them.
  View activate_grad(const Ctx&, View dy, View fc1) const;
  View rows(View) const;  // as [n, ffn]

  Activation activation_;
  int64_t ffn_;  // of this rank
  Linear fc1_, fc2_;
};

}  // namespace megalith
