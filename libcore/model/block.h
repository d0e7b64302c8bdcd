#pragma once

#include <optional>

#include "libcore/model/attention.h"
#include "libcore/model/mlp.h"
#include "libcore/model/norm.h"

namespace megalith {

/// One transformer layer: h = x + dropout(attention(norm(x))), y = h + dropout(mlp(norm(h))). With
/// --norm-placement after, h = x + dropout(norm(attention(x))), and likewise y; with both, a branch has a
/// norm at its beginning and one at its end. With --parallel-residual, the second norm reads x, too: y = h +
/// dropout(mlp(norm(x))); with one norm for both branches, the MLP reads what attention reads.
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
    BranchNorm::Saved after1, after2;
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
  /// The end of a branch: its site of dropout, and its norm (null: none) with what that keeps.
  struct End {
    uint32_t site;
    const BranchNorm* norm;
    const BranchNorm::Saved& saved;
  };
  End attention_end(const Saved&) const;
  End mlp_end(const Saved&) const;
  /// Memory for the output of a branch inside the tensor region, which joins the residual stream in `y`.
  static View branch_memory(const Ctx&, const End&, View y);
  /// What makes y = x + dropout(norm(branch)), for the norm that reads y. Scales the branch in place, if the
  /// model does.
  Norm::Join join(const Ctx&, View y, View branch, ConstView x, const End&) const;
  /// Returns the gradient of a branch's output inside the tensor region; `d` is the gradient outside. The
  /// result is `d` itself or, if dropout, a norm or a gather changes it, new memory in ctx.scratch.
  Region::Late into_branch(const Ctx&, ConstView d, const End&) const;
  /// Adds to the gradient of the residual stream, g.dx and g.add, that of a branch's input: g.dy, through the
  /// norm with which the branch begins, if it does.
  static void out_of_branch(const Ctx&, const std::optional<Norm>&, const Norm::Grad& g, const Norm::Saved&);
  /// What the feed-forward block reads, once `h` is written: its norm in `n2`, or h itself.
  ConstView enter_mlp(const Ctx&, View n2, const Norm::Join& h, const Norm::Saved&) const;
  DropoutKey dropout(const Ctx&, ConstView x, uint32_t site) const;

  int layer_;
  bool parallel_;
  float dropout_;
  float multiplier_;  // of branches
  std::optional<Norm> norm1_;
  SelfAttention attention_;
  std::optional<BranchNorm> after1_;
  std::optional<Norm> norm2_;
  Mlp mlp_;
  std::optional<BranchNorm> after2_;
};

}  // namespace megalith
