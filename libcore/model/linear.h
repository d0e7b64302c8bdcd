#pragma once

#include <string>

#include "libcore/model/ctx.h"
#include "libcore/model/params.h"

namespace megalith {

/// How a linear layer's weight is declared. Fused parts are leading axes: {groups, q + 2, head, in}.
struct LinearShape {
  std::string name;  // "decoder.layers.0.mlp.linear_fc1"
  Shape weight;      // [..., in]
  int cut_axis;  // of the weight: the last one is `in` (row parallel), others the output (column parallel)
  double init_std;
  bool bias;
};

/// y = x W^T + b. Column parallel, row parallel and the LM head are one class: the cut is data. In a
/// row-parallel layer only the first rank adds the bias, so that leaving the region counts it once.
class Linear {
 public:
  Linear(ParamTable&, const TensorSplit&, const LinearShape&);

  void forward(const Ctx&, View y, ConstView x) const;           // y [n, out/tp], x [n, in]
  void backward_input(const Ctx&, View dx, ConstView dy) const;  // dx [n, in]; the ranks' summand
  /// Adds to the gradients of weight and bias; nothing for a frozen one.
  void backward_weight(const Ctx&, ConstView dy, ConstView x) const;

  int64_t in() const { return weight_->local.back(); }
  int64_t out() const { return weight_->local.rows(); }  // of this rank

 private:
  View weight_matrix() const { return weight_->value.as_shape({out(), in()}); }

  Param* weight_;
  Param* bias_ = nullptr;
  bool adds_bias_ = false;
};

}  // namespace megalith
