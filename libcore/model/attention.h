#pragma once

#include <string>

#include "libcore/config/model_config.h"
#include "libcore/model/kv_cache.h"
#include "libcore/model/linear.h"

namespace megalith {

/// The angle by which one position turns pair `pair` of a head, in fp32 as Megatron and Hugging Face round
/// it.
float rotary_frequency(const ModelConfig& config, int64_t pair);

/// Causal self-attention with grouped queries on the heads of this rank: QKV projection, rotation, attention,
/// output projection. If the sequence is cut over a context group, the queries of this rank's rows see the
/// keys and values of all ranks. These are gathered again in the backward pass, so that no rank keeps them.
class SelfAttention {
 public:
  SelfAttention(ParamTable&, const TensorSplit&, const ModelConfig&, int layer);

  struct Saved {
    View qkv;  // [s, b, groups, q + 2, head], rotated
    View out;  // [s, b, groups * q, head]; empty: recomputed in backward
    View lse;  // [b, groups * q, s] f32; empty whenever out is
  };
  /// core: also keep out and lse.
  Saved make_saved(Arena&, int64_t s, int64_t b, DType, bool core) const;

  /// This rank's summand of the output goes to y [s, b, h]; x is [s, b, h] inside the region.
  void forward(const Ctx&, View y, ConstView x, const Saved&) const;
  /// Whether backward() reads x.
  bool keeps_input() const { return qkv_.keeps_input(); }
  /// dx: this rank's summand of the gradient of x, overwritten.
  void backward(const Ctx&, View dx, ConstView dy, ConstView x, const Saved&) const;
  /// Attention for new rows; the caches hold the earlier ones.
  void cached(const Ctx&, View y, ConstView x, const Reading&, size_t local_layer) const;

 private:
  View make_out(Arena&, ConstView qkv) const;
  void rotate(const Ctx&, View qkv, const RowPositions&, bool inverse) const;
  int64_t prefix_positions() const { return prefix_ ? prefix_->global[2] : 0; }
  /// Positions of this rank's rows: those of the context region, or those after the prefix.
  RowPositions positions(const Ctx&, int64_t s) const;
  /// [s_total, b, groups, 2, head] in ctx.scratch: the keys and values of the prefix, or of all context
  /// ranks. Empty if this rank's qkv has all of them.
  View gather(const Ctx&, ConstView qkv) const;
  View make_whole(const Ctx&, ConstView qkv) const;
  void core(const Ctx&, View out, View lse, ConstView qkv, ConstView kv) const;
  void core_grad(const Ctx&, View dqkv, ConstView dout, const Saved&, ConstView kv) const;
  DropoutKey dropout(const Ctx&, int64_t s) const;

  int layer_;
  int64_t groups_, queries_, head_;  // of this rank; queries of each group
  int64_t first_head_;               // global number of the rank's first query head
  float scale_, dropout_;
  int64_t window_;                 // of cached(); 0: none
  const Param* prefix_ = nullptr;  // [2 (k, v), groups, positions, head]; null: none
  const Constant* cos_ = nullptr;
  const Constant* sin_ = nullptr;
  Linear qkv_, proj_;
};

}  // namespace megalith
