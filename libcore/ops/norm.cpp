#include "libcore/ops/norm.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {

// Floating-point operations per element, counted by hand. LayerNorm: sum 1, variance 3, output 4; RmsNorm:
// squares 2, output 2; gradients: x-hat 2, dy w 1, two sums 3, dx 4, dw 2 (LayerNorm db 1).
constexpr double kLayerNormFlops = 8, kRmsNormFlops = 4, kLayerNormGradFlops = 13, kRmsNormGradFlops = 10;

template <class Norm>
void check_norm(const Norm& op) {
  want_float(Norm::kName, "x", op.x);
  want_alike(Norm::kName, "y and x alike", op.y, op.x);
  want_vector(Norm::kName, "w [h], of x's dtype,", op.w, op.x.shape.back(), op.x.dtype);
  if (op.rstd) want_vector(Norm::kName, "rstd [n]", op.rstd, op.x.shape.rows(), DType::kF32);
  require(bool(op.residual) == bool(op.sum), Norm::kName, "residual and sum together", op.residual.shape,
          op.sum.shape);
  require(op.dropout.p == 0 || (op.residual && op.x.shape.rank == 3), Norm::kName,
          "x [s, b, h] and a residual with dropout", op.x.shape, op.residual.shape);
  if (!op.residual) return;
  op.dropout.check(Norm::kName, op.x.shape.rank == 3 ? op.x.shape[1] : 0);
  want_alike(Norm::kName, "residual and x alike", op.residual, op.x);
  want_alike(Norm::kName, "sum and x alike", op.sum, op.x);
}

/// Operations per element of dropout(x) + residual.
double join_flops(const auto& op) {
  return (op.residual ? 1 : 0) + (op.dropout.p > 0 ? 2 : 0);
}

template <class NormGrad>
void check_norm_grad(const NormGrad& op) {
  want_float(NormGrad::kName, "dy", op.dy);
  want_alike(NormGrad::kName, "dx and dy alike", op.dx, op.dy);
  want_alike(NormGrad::kName, "x and dy alike", op.x, op.dy);
  want_vector(NormGrad::kName, "w [h], of dy's dtype,", op.w, op.dy.shape.back(), op.dy.dtype);
  want_vector(NormGrad::kName, "rstd [n]", op.rstd, op.dy.shape.rows(), DType::kF32);
  if (op.add) want_alike(NormGrad::kName, "add and dy alike", op.add, op.dy);
  if (op.dw) want_vector(NormGrad::kName, "dw [h]", op.dw, op.dy.shape.back(), DType::kF32);
}

}  // namespace

void LayerNorm::check() const {
  check_norm(*this);
  want_vector(kName, "b [h], of x's dtype,", b, x.shape.back(), x.dtype);
  if (mean) want_vector(kName, "mean [n]", mean, x.shape.rows(), DType::kF32);
}

Cost LayerNorm::cost() const {
  return {static_cast<double>(x.elements()) * (kLayerNormFlops + join_flops(*this)),
          bytes_of(x) + bytes_of(y) + bytes_of(residual) + bytes_of(sum) + bytes_of(w) + bytes_of(b) +
              bytes_of(mean) + bytes_of(rstd)};
}

void LayerNormGrad::check() const {
  check_norm_grad(*this);
  want_vector(kName, "mean [n]", mean, dy.shape.rows(), DType::kF32);
  if (db) want_vector(kName, "db [h]", db, dy.shape.back(), DType::kF32);
}

Cost LayerNormGrad::cost() const {
  return {static_cast<double>(dy.elements()) * kLayerNormGradFlops,
          bytes_of(dy) + bytes_of(x) + bytes_of(dx) + bytes_of(add) + bytes_of(w) + bytes_of(mean) +
              bytes_of(rstd) + 2 * (bytes_of(dw) + bytes_of(db))};
}

void RmsNorm::check() const {
  check_norm(*this);
}

Cost RmsNorm::cost() const {
  return {static_cast<double>(x.elements()) * (kRmsNormFlops + join_flops(*this)),
          bytes_of(x) + bytes_of(y) + bytes_of(residual) + bytes_of(sum) + bytes_of(w) + bytes_of(rstd)};
}

void RmsNormGrad::check() const {
  check_norm_grad(*this);
}

Cost RmsNormGrad::cost() const {
  return {static_cast<double>(dy.elements()) * kRmsNormGradFlops, bytes_of(dy) + bytes_of(x) + bytes_of(dx) +
                                                                      bytes_of(add) + bytes_of(w) +
                                                                      bytes_of(rstd) + 2 * bytes_of(dw)};
}

}  // namespace megalith
