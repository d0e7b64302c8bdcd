#pragma once

#include <optional>

#include "libcore/model/attention.h"
#include "libcore/model/mlp.h"
#include "libcore/model/norm.h"

namespace megalith {

/// One pre-norm transformer layer: h = x + dropout(attention(norm(x))), y = h + dropout(mlp(norm(h))). With
/// --parallel-residual, the second norm reads x, too: y = h + dropout(mlp(norm(x))). With one norm for both
/// branches, the MLP reads what attention reads.
class Block {
 public:
  /// `layer`: the block's number in the whole model, from 0.
  Block(ParamTable&, const TensorSplit&, const ModelConfig&, int layer);

  struct Saved {
    Norm::Saved norm1, norm2;
    View n1, h,
        n2;  // [s', b, h]; n1, n2: outputs of the norms, empty if no gradient needs them, or no norm is
    SelfAttention::Saved attention;
    Mlp::Saved mlp;
  };
  /// x: [s', b, h]. attention_core: also keeps the attention's output; false with selective recomputation.
  Saved make_saved(const Ctx&, Arena&, ConstView x, bool attention_core) const;

  /// Which norms are computed with the sums that they read.
  struct Neighbours {
    bool normed;        // the block before has computed saved.n1
    const Block* next;  // y's reader, whose first norm (next_saved->n1) is computed here; null: none is
    const Saved* next_saved;
    int next_unit;  // of its parameters
  };
  void forward(const Ctx&, View y, ConstView x, const Saved&, const Neighbours& = {}) const;
  /// d: gradient of y; on return, gradient of x. Overwrites the tensors of Saved.
  void backward(const Ctx&, View d, ConstView x, const Saved&) const;
  /// y = block(x) for new rows. The caches hold the keys and values of the earlier rows; those of `x` are
  /// appended.
  void cached(const Ctx&, View y, ConstView x, const Reading&, size_t local_layer) const;

 private:
  /// Adds the attention's branch: writes h = x + dropout(branch) and, if there is a second norm, that to n2.
  void enter_mlp(const Ctx&, View n2, const Norm::Join& h, const Norm::Saved&) const;
  /// What makes y = x + dropout(branch), for the norm that reads y.
  Norm::Join join(const Ctx&, View y, ConstView branch, ConstView x, uint32_t site) const;
  /// Returns the gradient of a branch's output inside the tensor region; `d` is the gradient outside. The
  /// result is `d` itself or, if dropout or a gather changes it, new memory in ctx.scratch.
  Region::Late into_branch(const Ctx&, ConstView d, uint32_t site) const;
  DropoutKey dropout(const Ctx&, ConstView x, uint32_t site) const;

  int layer_;
  bool parallel_;
  float dropout_;
  Norm norm1_;
  SelfAttention attention_;
  std::optional<Norm> norm2_;
  Mlp mlp_;
};

}  // namespace megalith
