#pragma once

#include <optional>
#include <string>

#include "libcore/config/model_config.h"
#include "libcore/model/kv_cache.h"
#include "libcore/model/linear.h"
#include "libcore/model/norm.h"

namespace megalith {

/// Causal self-attention with grouped queries on the heads of this rank: QKV projection, norms of queries and
/// keys if the model has them, rotation, attention, output projection. If a context group divides the
/// sequence, the queries of this rank see the keys and values of all ranks. The backward pass gathers keys
/// and values again, so that no rank keeps those of the other ranks.
class SelfAttention {
 public:
  SelfAttention(ParamTable&, const TensorSplit&, const ModelConfig&, int layer);

  struct Saved {
    /// [s, b, groups, q + 2, head], rotated; with norms of queries and keys as it was projected, since their
    /// backward pass reads that, and normalizing and rotating again costs little beside keeping both.
    View qkv;
    View out;  // [s, b, groups * q, head]; empty: recomputed in backward
    View lse;  // [b, groups * q, s] f32; empty if `out` is
    HeadNorms::Saved norms;
  };
  /// With `core`, also allocates out and lse.
  Saved make_saved(Arena&, int64_t s, int64_t b, DType, bool core) const;

  /// x has the rows that this rank has outside the tensor region; so has the result, the sum over the ranks
  /// of the output. It is in y [s, b, h], which holds this rank's summand before.
  View forward(const Ctx&, View y, ConstView x, const Saved&) const;
  /// Whether backward() reads x.
  bool keeps_input() const { return qkv_.keeps_input(); }
  /// dy and x have all rows. Returns the gradient of this rank's rows outside the tensor region, which is in
  /// dx [s, b, h].
  View backward(const Ctx&, View dx, const Region::Late& dy, const Region::Late& x, const Saved&) const;
  /// Attention of the new rows `x` over themselves and all earlier rows; the result is as that of forward().
  /// Appends the keys and values of `x` to the caches, which hold those of the earlier rows.
  View cached(const Ctx&, View y, ConstView x, const Reading&, size_t local_layer) const;

 private:
  View make_out(Arena&, ConstView qkv) const;
  /// The qkv that attention reads: `saved.qkv` itself or, with norms, normed and rotated in ctx.scratch.
  /// `again`: in the backward pass, from what the norms need there.
  View ready(const Ctx&, const Saved&, const HeadNorms::Saved* again = nullptr) const;
  void rotate(const Ctx&, View qkv, const RowPositions&, bool inverse) const;
  int64_t prefix_positions() const { return prefix_ ? prefix_->global[2] : 0; }
  /// Positions of this rank's rows. With a prefix, they follow the prefix; otherwise, they are those of the
  /// context region.
  RowPositions positions(const Ctx&, int64_t s) const;
  /// Returns, in ctx.scratch, the keys and values [s_total, b, groups, 2, head] of the prefix and of qkv or,
  /// with a context group, of the qkv of all its ranks. Returns an empty view without a prefix or context
  /// group: qkv then has all keys and values.
  View gather(const Ctx&, ConstView qkv) const;
  View make_whole(const Ctx&, ConstView qkv) const;
  /// The window of queries among this many positions: 0 if it hides none of them.
  int64_t window(int64_t positions) const { return window_ < positions ? window_ : 0; }
  void core(const Ctx&, View out, View lse, ConstView qkv, ConstView kv) const;
  void core_grad(const Ctx&, View dqkv, ConstView dout, const Saved&, ConstView kv) const;
  DropoutKey dropout(const Ctx&, int64_t s) const;

  int layer_;
  int64_t groups_, queries_, head_;  // groups on this rank, query heads per group, channels per head
  int64_t first_head_;               // global number of the rank's first query head
  float scale_, dropout_;
  int64_t window_;                 // in positions; 0: none
  const Param* prefix_ = nullptr;  // [2 (k, v), groups, positions, head]; null: none
  const Constant* cos_ = nullptr;
  const Constant* sin_ = nullptr;
  Linear qkv_;
  std::optional<HeadNorms> norms_;
  Linear proj_;
};

}  // namespace megalith
