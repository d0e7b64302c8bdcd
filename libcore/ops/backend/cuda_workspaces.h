#pragma once

#include <algorithm>

#include "libcore/ops/attention.h"
#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/embedding.h"
#include "libcore/ops/linear.h"
#include "libcore/ops/norm.h"
#include "libcore/ops/optimizer.h"
#include "libcore/ops/step.h"

/// Bytes of scratch memory that an op needs on its stream on CUDA. The CUDA backend asks for that much, and
/// the dry backend finds the maximum of a run.
namespace megalith::cuda {

template <class Op>
size_t workspace_of(const Op&) {
  return 0;
}
inline size_t workspace_of(const BiasGrad& op) {
  return column_sums_bytes(op.dy.shape.rows(), op.dy.shape.back());
}
/// Enough for BiasGrad too, which runs if cuBLASLt does not take the epilogue.
inline size_t workspace_of(const Gemm& op) {
  const BiasGrad apart{.dbias = op.bias_grad, .dy = op.a};
  return std::max(kMinWorkspace, op.bias_grad ? workspace_of(apart) : 0);
}
inline size_t workspace_of(const LayerNormGrad& op) {
  return op.dw || op.db ? norm_grad_bytes(rows_taken(op.part, op.dy.shape.rows()), op.dy.shape.back(), 2) : 0;
}
inline size_t workspace_of(const RmsNormGrad& op) {
  return op.dw ? norm_grad_bytes(rows_taken(op.part, op.dy.shape.rows()), op.dy.shape.back(), 1) : 0;
}
inline size_t workspace_of(const HeadsNormGrad& op) {
  const Shape& x = op.x.shape;
  return op.dq_w || op.dk_w ? heads_norm_grad_bytes(x[0] * x[1], x[2] * x[3] * x[4]) : 0;
}
inline size_t workspace_of(const EmbeddingGrad& op) {
  return EmbeddingScratch(op.dy.shape.rows(), op.dy.shape.back()).bytes();
}
/// How many samples, of which each has one group's heads, cuDNN's gradient takes at a time, and the scratch
/// memory for that. For equal bits in every run cuDNN keeps the gradients of all scores. As many samples go
/// together as need at most kMost bytes for it, the limit that cuDNN's front end had for such memory; one
/// that needs more goes alone.
struct SdpaSlice {
  static constexpr int64_t kMost = int64_t{256} << 20;
  static constexpr size_t kForwardBytes = 4096;  // of the plan without gradients, which keeps no scores
  int64_t samples;
  size_t plan_bytes, delta_bytes;  // of cuDNN's plan, and for each row of each head
  explicit SdpaSlice(const AttentionKind& kind)
      : samples(kind.batch * kind.groups), plan_bytes(0), delta_bytes(0) {
    constexpr int64_t kBytes = 2, kMore = 4096;  // of an element; for itself
    const int64_t scores = score_bytes(kind), all = samples, most = std::max<int64_t>(kMost / scores, 1);
    while (samples > most || all % samples != 0) --samples;
    // The gradients of keys and values of each head, before their sum.
    const int64_t heads = kind.r == 1 ? 0 : 2 * kind.r * tiled_rows(kind) * kind.head * kBytes;
    plan_bytes = static_cast<size_t>(samples * (scores + heads) + kMore);
    delta_bytes = static_cast<size_t>(samples * kind.r * kind.rows) * sizeof(float);
  }
  size_t bytes() const { return plan_bytes + delta_bytes; }
};
inline size_t workspace_of(const Attention& op) {
  const auto kind = attention_kind(op);
  return kind ? SdpaSlice::kForwardBytes : 0;
}
/// For each row of each head, the product of out and dout; or what cuDNN needs.
inline size_t workspace_of(const AttentionGrad& op) {
  const auto kind = attention_kind(op);
  return kind ? std::max(op.lse.bytes(), SdpaSlice(*kind).bytes()) : op.lse.bytes();
}
/// Whether there are so few queries that the CUDA backend divides their keys among blocks (DecodeCut).
inline bool decodes(const CachedAttention& op) {
  constexpr int64_t kFewQueries = 8;
  return op.qkv.shape[0] <= kFewQueries;
}
inline DecodeCut decode_cut(const CachedAttention& op) {
  const Shape& qkv = op.qkv.shape;
  const int64_t rows = qkv[0] * (qkv[3] - 2), first = op.past - op.window + 1;
  return {op.window > 0 && first > 0 ? first : 0, op.past + qkv[0],
          qkv[1] * qkv[2] * RowCut::divided(rows, DecodeCut::kRows)};
}
inline size_t workspace_of(const CachedAttention& op) {
  const Shape& qkv = op.qkv.shape;
  return decodes(op) ? decode_bytes(decode_cut(op), qkv[0] * qkv[1] * qkv[2] * (qkv[3] - 2), qkv[4]) : 0;
}
inline size_t workspace_of(const SumSquares& op) {
  return sum_bytes(op.x.elements());
}
inline size_t workspace_of(const ScaledSum& op) {
  return sum_bytes(op.x.elements());
}

}  // namespace megalith::cuda
