#include "libcore/ops/norm.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {

// Floating-point operations per element, counted by hand. LayerNorm: sum 1, variance 3, output 4; RmsNorm:
// squares 2, output 2; gradients: x-hat 2, dy w 1, two sums 3, dx 4, dw 2 (LayerNorm db 1).
constexpr double kLayerNormFlops = 8, kRmsNormFlops = 4, kLayerNormGradFlops = 13, kRmsNormGradFlops = 10;

int64_t taken(const auto& op, const ConstView& view) {
  return rows_taken(op.part, view.shape.rows());
}

/// The part must lie within its group, and groups must be whole.
void want_part(const char* op, const RowPart& part, int64_t rows) {
  require(part.first >= 0 && part.count > 0 && part.first + part.count <= part.of, op,
          "a part within its group of rows", part.first + part.count, part.of);
  require(rows % part.of == 0, op, "whole groups of rows", rows, part.of);
}

template <class Norm>
void check_norm(const Norm& op) {
  want_float(Norm::kName, "x", op.x);
  want_alike(Norm::kName, "y and x alike", op.y, op.x);
  want_vector(Norm::kName, "w [h], of x's dtype,", op.w, op.x.shape.back(), op.x.dtype);
  want_part(Norm::kName, op.part, op.x.shape.rows());
  if (op.rstd) want_vector(Norm::kName, "rstd [m]", op.rstd, taken(op, op.x), DType::kF32);
  require(bool(op.residual) == bool(op.sum), Norm::kName, "residual and sum together", op.residual.shape,
          op.sum.shape);
  require(op.dropout.p == 0 || (op.residual && op.x.shape.rank == 3), Norm::kName,
          "x [s, b, h] and a residual with dropout", op.x.shape, op.residual.shape);
  require(!op.residual || op.part.of == 1, Norm::kName, "all rows with a residual", op.part.of, 1);
  if (!op.residual) return;
  op.dropout.check(Norm::kName, op.x.shape.rank == 3 ? op.x.shape[1] : 0);
  want_alike(Norm::kName, "residual and x alike", op.residual, op.x);
  want_alike(Norm::kName, "sum and x alike", op.sum, op.x);
}

/// The elements of a tensor [n, h], and their bytes, in the rows that the op takes.
double elements_of(const auto& op, const ConstView& view) {
  return static_cast<double>(taken(op, view) * view.shape.back());
}
double part_bytes(const auto& op, const ConstView& view) {
  return view ? elements_of(op, view) * static_cast<double>(size_of(view.dtype)) : 0.0;
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
  want_part(NormGrad::kName, op.part, op.dy.shape.rows());
  want_vector(NormGrad::kName, "rstd [m]", op.rstd, taken(op, op.dy), DType::kF32);
  if (op.add) want_alike(NormGrad::kName, "add and dy alike", op.add, op.dy);
  if (op.dw) want_vector(NormGrad::kName, "dw [h]", op.dw, op.dy.shape.back(), DType::kF32);
}

}  // namespace

void LayerNorm::check() const {
  check_norm(*this);
  want_vector(kName, "b [h], of x's dtype,", b, x.shape.back(), x.dtype);
  if (mean) want_vector(kName, "mean [m]", mean, taken(*this, x), DType::kF32);
}

Cost LayerNorm::cost() const {
  return {elements_of(*this, x) * (kLayerNormFlops + join_flops(*this)),
          part_bytes(*this, x) + part_bytes(*this, y) + bytes_of(residual) + bytes_of(sum) + bytes_of(w) +
              bytes_of(b) + bytes_of(mean) + bytes_of(rstd)};
}

void LayerNormGrad::check() const {
  check_norm_grad(*this);
  want_vector(kName, "mean [m]", mean, taken(*this, dy), DType::kF32);
  if (db) want_vector(kName, "db [h]", db, dy.shape.back(), DType::kF32);
}

Cost LayerNormGrad::cost() const {
  return {elements_of(*this, dy) * kLayerNormGradFlops,
          part_bytes(*this, dy) + part_bytes(*this, x) + part_bytes(*this, dx) + part_bytes(*this, add) +
              bytes_of(w) + bytes_of(mean) + bytes_of(rstd) + 2 * (bytes_of(dw) + bytes_of(db))};
}

void RmsNorm::check() const {
  check_norm(*this);
}

Cost RmsNorm::cost() const {
  return {elements_of(*this, x) * (kRmsNormFlops + join_flops(*this)),
          part_bytes(*this, x) + part_bytes(*this, y) + bytes_of(residual) + bytes_of(sum) + bytes_of(w) +
              bytes_of(rstd)};
}

void RmsNormGrad::check() const {
  check_norm_grad(*this);
}

Cost RmsNormGrad::cost() const {
  return {elements_of(*this, dy) * kRmsNormGradFlops, part_bytes(*this, dy) + part_bytes(*this, x) +
                                                          part_bytes(*this, dx) + part_bytes(*this, add) +
                                                          bytes_of(w) + bytes_of(rstd) + 2 * bytes_of(dw)};
}

}  // namespace megalith
