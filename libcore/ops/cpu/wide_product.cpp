#include "libcore/ops/cpu/wide_product.h"

#include <algorithm>

#include "libcore/ops/cpu/elements.h"
#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

/// Rows of a panel: of 768 columns, 1.5 MB in fp32.
constexpr int64_t kRows = 512;

/// The view as a matrix.
template <class V>
V matrix(const V& view) {
  return view.as_shape({view.shape.rows(), view.shape.back()});
}

template <class V>
size_t copied(const V& view) {
  return view && view.dtype != DType::kF32 ? static_cast<size_t>(view.elements()) : 0;
}

}  // namespace

ConstView WideProduct::widened(const ConstView& view) {
  if (!view || view.dtype == DType::kF32) return view;
  const View copy{free_, DType::kF32, view.shape};
  free_ += view.elements();
  copy_elements(kernels_, copy, view);
  return copy;
}

View WideProduct::result(const View& view, bool accumulate) {
  if (view.dtype == DType::kF32) return view;
  const View wide{free_, DType::kF32, view.shape};
  free_ += view.elements();
  if (accumulate) copy_elements(kernels_, wide, view);
  return wide;
}

void WideProduct::multiply(const Gemm& wide, const View& to) {
  products_.run(wide);
  if (to.dtype != DType::kF32) copy_elements(kernels_, to, wide.c);
}

void WideProduct::run(const Gemm& op) {
  op.trans_a && !op.trans_b ? run_by_terms(op) : run_by_rows(op);
}

void WideProduct::run_by_rows(const Gemm& op) {
  const View c = matrix(op.c);
  const ConstView a = matrix(op.a);
  const int64_t m = c.shape[0], step = op.trans_a ? m : std::min(m, kRows);
  const ConstView first_a = op.trans_a ? a : a.rows(0, step);
  free_ = thread_scratch(copied(op.b) + copied(op.bias) + copied(first_a) + copied(c.rows(0, step)),
                         Scratch::kCopies);
  Gemm wide = op;
  wide.b = widened(op.b);
  wide.bias = widened(op.bias);
  float* const panel = free_;
  for (int64_t begin = 0; begin < m; begin += step, free_ = panel) {
    const int64_t end = std::min(m, begin + step);
    wide.a = widened(op.trans_a ? a : a.rows(begin, end));
    wide.c = result(c.rows(begin, end), op.accumulate);
    multiply(wide, c.rows(begin, end));
  }
}

void WideProduct::run_by_terms(const Gemm& op) {
  const ConstView a = matrix(op.a), b = matrix(op.b);
  const int64_t k = op.k(), step = std::min(k, kRows);
  free_ = thread_scratch(copied(op.c) + copied(op.bias) + copied(a.rows(0, step)) + copied(b.rows(0, step)),
                         Scratch::kCopies);
  Gemm wide = op;
  wide.c = result(op.c, op.accumulate);
  wide.bias = widened(op.bias);
  float* const panel = free_;
  for (int64_t begin = 0; begin < k; begin += step, free_ = panel) {
    const int64_t end = std::min(k, begin + step);
    wide.a = widened(a.rows(begin, end));
    wide.b = widened(b.rows(begin, end));
    products_.run(wide);
    wide.accumulate = true;
    wide.bias = {};
  }
  if (op.c.dtype != DType::kF32) copy_elements(kernels_, op.c, wide.c);
}

}  // namespace megalith::cpu
