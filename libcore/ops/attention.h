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
  bool inverse = false;  // the gradient: rotates back
  /// To keep documents of one sequence apart: for each row, the row at which its document begins, from which
  /// its position is counted. Empty: positions are counted from row 0. Only the CPU supports it.
  ConstView starts = {};  // [s, b] i32
  static constexpr const char* kName = "rope";
  void check() const;
  Cost cost() const;
};

/// Causal softmax attention on packed QKV with grouped queries, in flash form: nothing of size s x s is kept.
struct Attention {
  View out;       // [s, b, groups * r, head]
  ConstView qkv;  // [s, b, groups, r + 2, head]
  float scale;    // on q·k, usually 1/sqrt(head)
  // [b, groups * r, s] f32: log of the sum of exponentials, so that AttentionGrad need not recompute it;
  // empty: not kept.
  View lse = {};
  DropoutKey dropout = {};
  /// [s_total, b, groups, 2, head]: keys and values of every position of the sequence, if qkv has only some
  /// of them; qkv's own are then not read. Empty: qkv has all.
  ConstView kv = {};
  RowPositions rows = {};  // with kv: the positions of qkv's rows
  /// As in Rope: a row sees the rows from the first one of its document on. Within a sequence the starts
  /// never decrease, and no row's start is after the row itself. Only the CPU supports it.
  ConstView starts = {};  // [s, b] i32
  static constexpr const char* kName = "attention";
  void check() const;
  Cost cost() const;
};

struct AttentionGrad {
  View dqkv;       // [s, b, groups, r + 2, head], overwritten; with kv, only the query heads are
  ConstView dout;  // [s, b, groups * r, head]
  ConstView out, qkv;
  ConstView lse;  // [b, groups * r, s] f32
  float scale;
  DropoutKey dropout = {};
  ConstView kv = {};  // as in Attention
  /// [s_total, b, groups, 2, head], with kv: overwritten with what these queries contribute to kv's gradient.
  View dkv = {};
  RowPositions rows = {};
  ConstView starts = {};  // [s, b] i32, as in Attention
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

/// Attention of t new rows over the cache of `past` earlier ones, so that generation need not process those
/// again. First appends the new k and v to the cache.
struct CachedAttention {
  View out;               // [t, b, groups * r, head]
  View k_cache, v_cache;  // [b, groups, capacity, head]; positions past .. past + t - 1 are written
  ConstView qkv;          // [t, b, groups, r + 2, head], already rotated
  int64_t past;
  float scale;
  int64_t window = 0;  // positions that a query sees, including its own; 0: all. The cache keeps them all
  /// Whether the window hides a position from one of these queries. Only the CPU supports that, in fp32.
  bool hides() const { return window > 0 && past + qkv.shape[0] > window; }
  static constexpr const char* kName = "cached_attention";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
