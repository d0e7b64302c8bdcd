#include "libcore/ops/norm.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {

// Floating-point operations per element, counted by hand. LayerNorm: sum 1, variance 3, output 4; RmsNorm:
// squares 2, output 2; gradients: x-hat 2, dy w 1, two sums 3, dx 4, dw 2 (LayerNorm db 1).
constexpr double kLayerNormFlops = 8, kRmsNormFlops = 4, kLayerNormGradFlops = 13, kRmsNormGradFlops = 10;
// HeadSums: squares 2, with d one product more; HeadsNorm: output 2; its gradient: x-hat 1, dx 4, dw 2.
constexpr double kHeadSumsFlops = 2, kHeadDotsFlops = 3, kHeadsNormFlops = 2, kHeadsNormGradFlops = 7;

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

void want_packed(const char* op, const ConstView& x) {
  want_float(op, "x", x);
  require(x.shape.rank == 5 && x.shape[3] >= 3, op, "x [s, b, groups, r + 2, head] with r >= 1", x.shape,
          x.shape.rank);
}

int64_t positions(const ConstView& packed) {
  return packed.shape[0] * packed.shape[1];
}
int64_t key_width(const ConstView& packed) {
  return packed.shape[2] * packed.shape[4];
}
int64_t query_width(const ConstView& packed) {
  return key_width(packed) * (packed.shape[3] - 2);
}

void want_head_weights(const char* op, const ConstView& x, const ConstView& q_w, const ConstView& k_w) {
  want_vector(op, "q_w [groups * r * head], of x's dtype,", q_w, query_width(x), x.dtype);
  want_vector(op, "k_w [groups * head], of x's dtype,", k_w, key_width(x), x.dtype);
}

/// The sums, and the widths that they are of, which are at least those here.
void want_sums(const auto& op, const ConstView& sums, const char* rule) {
  want_vector(op.kName, rule, sums, 2 * positions(op.x), DType::kF32);
  require(op.q_width >= query_width(op.x) && op.k_width >= key_width(op.x), op.kName,
          "widths of all ranks' heads", op.q_width, op.k_width);
}

/// The elements of queries and keys, and the bytes of them in one tensor.
double head_elements(const ConstView& x) {
  return static_cast<double>(positions(x) * (query_width(x) + key_width(x)));
}
double head_bytes(const ConstView& x) {
  return head_elements(x) * static_cast<double>(size_of(x.dtype));
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

void HeadSums::check() const {
  want_packed(kName, x);
  want_vector(kName, "sums [2, s * b]", sums, 2 * positions(x), DType::kF32);
  require(bool(d) == bool(q_w) && bool(d) == bool(k_w), kName, "weights where there is d", q_w.shape,
          d.shape);
  if (!d) return;
  want_alike(kName, "d and x alike", d, x);
  want_head_weights(kName, x, q_w, k_w);
}

Cost HeadSums::cost() const {
  return {head_elements(x) * (d ? kHeadDotsFlops : kHeadSumsFlops),
          head_bytes(x) * (d ? 2 : 1) + bytes_of(q_w) + bytes_of(k_w) + bytes_of(sums)};
}

void HeadsNorm::check() const {
  want_packed(kName, x);
  want_alike(kName, "y and x alike", y, x);
  want_head_weights(kName, x, q_w, k_w);
  want_sums(*this, squares, "squares [2, s * b]");
}

Cost HeadsNorm::cost() const {
  const double values = y.data == x.data ? 0 : bytes_of(x) - head_bytes(x);
  return {head_elements(x) * kHeadsNormFlops,
          2 * (head_bytes(x) + values) + bytes_of(q_w) + bytes_of(k_w) + bytes_of(squares)};
}

void HeadsNormGrad::check() const {
  want_packed(kName, x);
  want_alike(kName, "d and x alike", d, x);
  want_head_weights(kName, x, q_w, k_w);
  want_sums(*this, squares, "squares [2, s * b]");
  want_sums(*this, dots, "dots [2, s * b]");
  if (dq_w) want_vector(kName, "dq_w [groups * r * head]", dq_w, query_width(x), DType::kF32);
  if (dk_w) want_vector(kName, "dk_w [groups * head]", dk_w, key_width(x), DType::kF32);
}

Cost HeadsNormGrad::cost() const {
  return {head_elements(x) * kHeadsNormGradFlops, 3 * head_bytes(x) + bytes_of(q_w) + bytes_of(k_w) +
                                                      bytes_of(squares) + bytes_of(dots) +
                                                      2 * (bytes_of(dq_w) + bytes_of(dk_w))};
}

}  // namespace megalith
