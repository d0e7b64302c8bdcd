#pragma once

#include "libcore/ops/attention.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/linear.h"
#include "libcore/ops/norm.h"
#include "libcore/ops/optimizer.h"
#include "libcore/ops/step.h"

/// Bytes of scratch memory that the CUDA backend takes for an op, on the op's stream. The backend asks for as
/// much, and the dry backend finds the maximum of a run.
namespace megalith::cuda {

template <class Op>
size_t workspace_of(const Op&) {
  return 0;
}
inline size_t workspace_of(const Gemm&) {
  return kMinWorkspace;
}
inline size_t workspace_of(const BiasGrad& op) {
  return column_sums_bytes(op.dy.shape.rows(), op.dy.shape.back());
}
inline size_t workspace_of(const LayerNormGrad& op) {
  return op.dw || op.db ? column_sums_bytes(op.dy.shape.rows(), op.dy.shape.back()) : 0;
}
inline size_t workspace_of(const RmsNormGrad& op) {
  return op.dw ? column_sums_bytes(op.dy.shape.rows(), op.dy.shape.back()) : 0;
}
/// For each row of each head, the product of out and dout.
inline size_t workspace_of(const AttentionGrad& op) {
  return op.lse.bytes();
}
inline size_t workspace_of(const SumSquares& op) {
  return sum_bytes(op.x.elements());
}
inline size_t workspace_of(const ScaledSum& op) {
  return sum_bytes(op.x.elements());
}

}  // namespace megalith::cuda
