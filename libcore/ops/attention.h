#pragma once

#include "libcore/ops/dropout.h"
#include "libcore/ops/op.h"

namespace megalith {

/// Rotary embedding, in place, of the q and k heads of a packed QKV in the "rotate half" form (the default of
/// Megatron and Hugging Face): (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), where x1 is the first half of
/// the rotated part of a head.
struct Rope {
  View qkv;            // [s, b, groups, r + 2, head]: r query heads, then key, then value of each group
  ConstView cos, sin;  // [positions, rotated / 2] f32; rotated <= head, and the rest of a head is unchanged
  RowPositions rows = {};
  bool inverse = false;  // true: rotates back, which gives the gradient
  /// For a sequence of several documents: for each row, the row at which its document begins. Positions are
  /// counted from there. Empty: positions are counted from row 0.
  ConstView starts = {};  // [s, b] i32
  static constexpr const char* kName = "rope";
  void check() const;
  Cost cost() const;
};

/// Causal softmax attention on packed QKV with grouped queries, in flash form: nothing of size s x s is kept.
struct Attention {
  View out;       // [s, b, groups * r, head]
  ConstView qkv;  // [s, b, groups, r + 2, head]
  float scale;    // factor of q·k, usually 1/sqrt(head)
  // [b, groups * r, s] f32: log of the sum of exponentials, so that AttentionGrad need not recompute it;
  // empty: not kept.
  View lse = {};
  DropoutKey dropout = {};
  /// [s_total, b, groups, 2, head]: the keys and values of all positions, if qkv holds only some positions.
  /// The keys and values in qkv are then not read. Empty: qkv holds all positions.
  ConstView kv = {};
  RowPositions rows = {};  // the positions of qkv's rows; default without kv
  /// For each row, the first row that it sees: where its document begins, as in Rope. Within a sequence the
  /// starts never decrease, and no row's start is after the row itself. Empty: a row sees all before it.
  ConstView starts = {};  // [s, b] i32
  int64_t window = 0;     // the number of positions that a query sees at most, its own included; 0: all
  static constexpr const char* kName = "attention";
  void check() const;
  Cost cost() const;
};

struct AttentionGrad {
  View dqkv;       // [s, b, groups, r + 2, head], overwritten; with kv, only its query heads are written
  ConstView dout;  // [s, b, groups * r, head]
  ConstView out, qkv;
  ConstView lse;  // [b, groups * r, s] f32
  float scale;
  DropoutKey dropout = {};
  ConstView kv = {};  // as in Attention
  /// Only with kv: [s_total, b, groups, 2, head], overwritten with the part of kv's gradient that comes from
  /// the queries of qkv.
  View dkv = {};
  RowPositions rows = {};
  ConstView starts = {};  // [s, b] i32, as in Attention
  int64_t window = 0;     // as in Attention
  static constexpr const char* kName = "attention_grad";
  void check() const;
  Cost cost() const;
};

/// Copies the key and value head of each group (its last two heads) between packed tensors; the other heads
/// of `to` are unchanged.
struct CopyKeyValues {
  View to;         // [s, b, groups, m, head], m >= 2
  ConstView from;  // [s, b, groups, n, head], n >= 2
  static constexpr const char* kName = "copy_key_values";
  void check() const;
  Cost cost() const;
};

/// Attention of t new positions over themselves and the `past` earlier positions, whose keys and values are
/// in the cache, so that generation need not process these again. First appends the new keys and values to
/// the cache.
struct CachedAttention {
  View out;               // [t, b, groups * r, head]
  View k_cache, v_cache;  // [b, groups, capacity, head]; positions past .. past + t - 1 are written
  ConstView qkv;          // [t, b, groups, r + 2, head], already rotated
  int64_t past;
  float scale;
  // The number of positions that a query sees, up to its own; 0: all. The cache keeps every position.
  int64_t window = 0;
  /// Whether the window hides any position from any of the queries. Then the CPU takes qkv in fp32 only. A
  /// GPU takes every type.
  bool hides() const { return window > 0 && past + qkv.shape[0] > window; }
  static constexpr const char* kName = "cached_attention";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
