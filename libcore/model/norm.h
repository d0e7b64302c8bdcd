#pragma once

#include <optional>
#include <string>

#include "libcore/config/model_config.h"
#include "libcore/model/ctx.h"
#include "libcore/model/params.h"

namespace megalith {

/// LayerNorm or RMSNorm, depending on the model.
class Norm {
 public:
  /// A norm of the residual stream. name: "decoder.layers.0.input_layernorm".
  Norm(ParamTable&, const TensorSplit&, const ModelConfig&, const std::string& name);
  struct Place {
    std::string name;
    int64_t width;             // elements of a row
    bool grad_summed_over_tp;  // as in Param, of its parameters
  };
  Norm(ParamTable&, const ModelConfig&, const Place&);

  struct Saved {
    View mean;  // [n] f32; empty for RMSNorm
    View rstd;  // [n] f32
  };
  Saved make_saved(Arena&, int64_t rows) const;

  /// y must not share x's memory: the backward pass reads x. With an empty `Saved`, mean and rstd are not
  /// kept.
  void forward(const Ctx&, View y, ConstView x, const Saved&) const;
  /// The norm of a part of x's rows; y may share x's memory if the caller keeps x elsewhere or needs no
  /// gradient.
  void forward_part(const Ctx&, View y, ConstView x, const Saved&, const RowPart&) const;
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
    RowPart part = {};   // as in forward_part()
  };
  void backward(const Ctx&, const Grad&, const Saved&) const;

 private:
  void run_forward(const Ctx&, View y, const Join&, const Saved&, const RowPart&) const;

  bool rms_;
  float eps_;
  Param* weight_;
  Param* bias_ = nullptr;
};

/// The norms of queries and keys (Megatron's --qk-layernorm; Qwen3): each head of a packed QKV is normalized
/// by itself, before the rotation. All query heads of a layer share one weight, all key heads another one.
/// Each tensor rank has both whole and computes the part of their gradients that comes from its heads.
///
/// With --qk-norm-all-heads (OLMo 2), all query heads are normalized as one vector, and so are all key heads.
/// The weights are divided among the tensor ranks as the heads are, and the ranks add up their sums.
class HeadNorms {
 public:
  /// prefix: "decoder.layers.0.self_attention.".
  HeadNorms(ParamTable&, const TensorSplit&, const ModelConfig&, const std::string& prefix);

  struct Saved {
    Norm::Saved query, key;  // of each head by itself
    View squares;            // [2, s * b] f32: of all heads together; otherwise empty
  };
  /// What the forward pass keeps for again(): only sums over ranks.
  Saved make_kept(Arena&, ConstView qkv) const;
  /// What backward() reads, with what the forward pass has kept.
  Saved make_saved(Arena&, ConstView qkv, const Saved& kept) const;
  /// Whether ranks add up sums.
  bool joint() const { return joint_.has_value(); }

  /// qkv, normed: [s, b, groups, q + 2, head]; may be the same memory. Values are copied.
  void forward(const Ctx&, View normed, ConstView qkv, const Saved&) const;
  /// forward() again, from what make_saved() returned: no rank waits for another.
  void again(const Ctx&, View normed, ConstView qkv, const Saved&) const;
  /// d: gradient of `normed`; on return, gradient of `qkv`, which forward() read. Calls on ctx.tp.tensor()
  /// must be allowed (Region::join()).
  void backward(const Ctx&, View d, ConstView qkv, const Saved&) const;

 private:
  /// The norms of all heads together.
  struct Joint {
    Param *query, *key;
    int64_t query_width, key_width;  // of all ranks
    float eps;
  };
  static std::optional<Joint> make_joint(ParamTable&, const TensorSplit&, const ModelConfig&,
                                         const std::string& prefix);
  /// Adds up sums over the tensor ranks.
  static void add_ranks(const Ctx&, View sums);
  void scale_joint(const Ctx&, View normed, ConstView qkv, ConstView squares) const;
  void backward_joint(const Ctx&, View d, ConstView qkv, ConstView squares) const;

  std::optional<Norm> query_, key_;
  std::optional<Joint> joint_;
};

/// The norm of what a branch (attention, feed-forward block) adds to the residual stream: --norm-placement
/// after and both.
class BranchNorm {
 public:
  /// name: "decoder.layers.0.post_self_attn_layernorm".
  BranchNorm(ParamTable&, const TensorSplit&, const ModelConfig&, const std::string& name);

  struct Saved {
    View branch;  // [s', b, h]: what is normalized
    Norm::Saved norm;
  };
  Saved make_saved(Arena&, ConstView x) const;
  /// Returns the normalized branch, in ctx.scratch. `branch` may be saved.branch; otherwise it is copied
  /// there, unless that is empty.
  View forward(const Ctx&, ConstView branch, const Saved&) const;
  /// Returns the gradient of the branch, in ctx.scratch.
  View backward(const Ctx&, ConstView dy, const Saved&) const;

 private:
  Norm norm_;
};

}  // namespace megalith
