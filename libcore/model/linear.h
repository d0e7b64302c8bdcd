#pragma once

#include <string>
#include <vector>

#include "libcore/model/ctx.h"
#include "libcore/model/low_rank.h"
#include "libcore/model/params.h"

namespace megalith {

/// How a linear layer's weight is declared. Fused parts are leading axes, so that sharding never mixes them:
/// {groups, q + 2, head, in}.
struct LinearShape {
  std::string name;  // "decoder.layers.0.mlp.linear_fc1"
  Shape weight;      // [..., in]
  int shard_axis;    // axis of `weight` that is sharded: the last one, `in` (row parallel), or one of the
                     // output axes (column parallel)
  double init_std;
  bool bias;
  int layer = 0;  // global number
  // DropoutKey::site of the layer's first adapter; each further adapter has the next number.
  uint32_t site = 0;
};

/// y = x W^T + b, plus what the adapters of the table's plan add. LinearShape::shard_axis decides whether the
/// layer is column-parallel or row-parallel. In a row-parallel layer only the first rank adds the bias, so
/// that the sum over ranks contains it once.
///
/// entering(), leaving() and their gradients join the product with the region's entry or exit
/// (parallel/region.h), which may then run beside it. In a layer with adapters the two follow each other.
class Linear {
 public:
  Linear(ParamTable&, const TensorSplit&, const LinearShape&);

  /// Writes to y [n, out/tp], given x [n, in]. With `before_gelu`, like y, that becomes the layer's output,
  /// and y becomes GELU (its tanh form) of it.
  void forward(const Ctx&, View y, ConstView x, View before_gelu = {}) const;
  /// forward() of all rows y [s, b, out/tp], where x [s', b, in] has those that this rank has outside.
  void entering(const Ctx&, View y, ConstView x, View before_gelu = {}) const;
  /// forward() to y [s, b, out] as this rank's summand. Returns the rows that this rank has outside, summed
  /// over the ranks, in y's memory.
  View leaving(const Ctx&, View y, ConstView x) const;
  /// Adds to the gradients of weight, bias and adapters (unless frozen), then writes this rank's summand of
  /// the gradient of x to dx [n, in]. dx may share x's memory: x is no longer read at that point. With
  /// `before_gelu` [n, in], x is GELU of it, and dx becomes the gradient of before_gelu.
  void backward(const Ctx&, View dx, ConstView dy, ConstView x, ConstView before_gelu = {}) const;
  /// backward() where the rows of dy [s, b, out] may be on their way. If they come in several parts and x is
  /// read (keeps_input()), dx must not share its memory: all parts of dx come before the gradient of the
  /// weight, which needs all rows.
  void backward_entering(const Ctx&, View dx, const Region::Late& dy, ConstView x,
                         ConstView before_gelu = {}) const;
  /// backward() with dx [s, b, in]. Returns the rows that this rank has outside, summed over the ranks, in
  /// dx's memory.
  View backward_leaving(const Ctx&, View dx, ConstView dy, ConstView x) const;
  /// Whether backward() reads x, so that x must be kept; false for a frozen layer without adapters.
  bool keeps_input() const { return weight_->trainable || !adapters_.empty(); }

  int64_t in() const { return weight_->local.back(); }
  int64_t out() const { return weight_->local.rows(); }  // of this rank

 private:
  void declare_adapters(ParamTable&, const TensorSplit&, const LinearShape&);
  /// y = x W^T + b or, with `before_gelu` and if fuses_gelu(), GELU of that.
  void project(const Ctx&, View y, ConstView x, View before_gelu = {}) const;
  /// Whether x is multiplied in its own type, so that the product has epilogues.
  bool multiplies(ConstView x) const { return weight_->int8 || weight_->value.dtype == x.dtype; }
  /// Whether the product's GELU is that of the layer's output.
  bool fuses_gelu(ConstView x) const { return adapters_.empty() && multiplies(x); }
  void add_grads(const Ctx&, ConstView dy, ConstView x) const;  // of weight and bias
  /// dx = dy W, times the derivative of GELU at `before_gelu` if that is given.
  void unproject(const Ctx&, View dx, ConstView dy, ConstView before_gelu = {}) const;
  View weight_matrix() const { return weight_->value.as_shape({out(), in()}); }
  /// The weight [out, in]. If it is stored in 8 bits, returns a copy in ctx.scratch, converted to this type.
  ConstView wide_weight(const Ctx&, DType) const;

  Param* weight_;
  Param* bias_ = nullptr;
  bool adds_bias_ = false;
  std::vector<LowRank> adapters_;
};

}  // namespace megalith
