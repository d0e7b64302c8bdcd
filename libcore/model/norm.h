#pragma once

#include <string>

#include "libcore/config/model_config.h"
#include "libcore/model/ctx.h"
#include "libcore/model/params.h"

namespace megalith {

/// LayerNorm or RMSNorm, depending on the model.
class Norm {
 public:
  /// name: "decoder.layers.0.input_layernorm".
  Norm(ParamTable&, const TensorSplit&, const ModelConfig&, const std::string& name);

  struct Saved {
    View mean;  // [n] f32; empty for RMSNorm
    View rstd;  // [n] f32
  };
  Saved make_saved(Arena&, int64_t rows) const;

  /// y must not share x's memory: the backward pass reads x. With an empty `Saved`, mean and rstd are not
  /// kept.
  void forward(const Ctx&, View y, ConstView x, const Saved&) const;
  /// What a branch adds to the residual stream, which is normalized next.
  struct Join {
    View sum;                    // [s, b, h], residual + dropout(branch); may share the branch's memory
    ConstView branch, residual;  // [s, b, h]; without a residual, sum is empty, too, and there is no dropout
    DropoutKey dropout;
  };
  /// Writes `join.sum`, and to y the norm of it, or that of the branch alone if there is no residual.
  void forward(const Ctx&, View y, const Join& join, const Saved&) const;
  struct Grad {
    View dx;             // [n, h], overwritten
    ConstView dy, x;     // [n, h]
    ConstView add = {};  // [n, h], gradient of the residual path, added to dx; may share dx's memory
  };
  void backward(const Ctx&, const Grad&, const Saved&) const;

 private:
  bool rms_;
  float eps_;
  Param* weight_;
  Param* bias_ = nullptr;
};

}  // namespace megalith
