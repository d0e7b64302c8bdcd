#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "libcore/ops/attention.h"

/// Which attention on a GPU cuDNN computes in place of our kernels. The plugin uses these types too, so no
/// function here may have its body in a .cpp file.
namespace megalith {

/// A causal attention without dropout over whole sequences, and its gradient.
struct AttentionKind {
  int64_t rows = 0, batch = 0, groups = 0, r = 0, head = 0;  // of qkv [rows, batch, groups, r + 2, head]
  DType dtype = DType::kBf16;
  auto operator<=>(const AttentionKind&) const = default;
};

/// The rows of the tiles of 128 in which cuDNN's gradient keeps a head's rows.
inline int64_t tiled_rows(const AttentionKind& kind) {
  constexpr int64_t kTile = 128;
  return (kind.rows + kTile - 1) / kTile * kTile;
}

/// Bytes of the gradients of all scores of one group of heads, which cuDNN's gradient keeps in 16 bits.
inline int64_t score_bytes(const AttentionKind& kind) {
  constexpr int64_t kBytes = 2;  // of an element
  return kind.r * tiled_rows(kind) * tiled_rows(kind) * kBytes;
}

/// The kind of an Attention, or of an AttentionGrad, that cuDNN may compute: in 16 bits, and without what
/// cuDNN lacks (our dropout mask) or what the graphs here leave out (keys apart, windows, documents that
/// share a sequence, heads of more than 128 columns), and where score_bytes() is at most 1 GiB: every run's
/// estimate counts that memory, with or without cuDNN. Nothing for any other.
template <class Op>
std::optional<AttentionKind> attention_kind(const Op& op) {
  constexpr int64_t kVector = 8,  // columns of 16 bytes
      kWidest = 128,              // cuDNN's widest on all devices since 8.0
      kMost = int64_t{1} << 30;   // bytes
  const Shape& qkv = op.qkv.shape;
  const bool narrow = op.qkv.dtype == DType::kBf16 || op.qkv.dtype == DType::kF16;
  const bool plain =
      !op.kv && !op.starts && op.window == 0 && op.dropout.p == 0 && op.rows.first == 0 && op.rows.one_span();
  if (!narrow || !plain || !op.lse || qkv[4] % kVector != 0 || qkv[4] > kWidest) return std::nullopt;
  const AttentionKind kind{.rows = qkv[0],
                           .batch = qkv[1],
                           .groups = qkv[2],
                           .r = qkv[3] - 2,
                           .head = qkv[4],
                           .dtype = op.qkv.dtype};
  if (score_bytes(kind) > kMost) return std::nullopt;
  return kind;
}

/// For what attention was chosen.
struct AttentionLibrary {
  std::string gpu;    // the name that the driver gives
  int64_t cudnn = 0;  // cuDNN's version: 91900 is 9.19.0; 0: there is none
  bool operator==(const AttentionLibrary&) const = default;
};

}  // namespace megalith
