#pragma once

#include <algorithm>

#include "libcore/ops/attention.h"
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
  return op.dw || op.db ? norm_grad_bytes(op.dy.shape.rows(), op.dy.shape.back(), 2) : 0;
}
inline size_t workspace_of(const RmsNormGrad& op) {
  return op.dw ? norm_grad_bytes(op.dy.shape.rows(), op.dy.shape.back(), 1) : 0;
}
inline size_t workspace_of(const EmbeddingGrad& op) {
  return EmbeddingScratch(op.dy.shape.rows(), op.dy.shape.back()).bytes();
}
/// For each row of each head, the product of out and dout.
inline size_t workspace_of(const AttentionGrad& op) {
  return op.lse.bytes();
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
