#include "libcore/ops/project.h"

#include "libcore/ops/checks.h"

namespace megalith {
void Project::check() const {
  want_dtype(kName, "y", y, DType::kF32);
  want_dtype(kName, "x", x, DType::kF32);
  require(x.shape.rows() == n(), kName, "as many rows in y as in x", y.shape, x.shape);
  require(w.shape.rank == 2 && w.shape[0] == out() && w.shape[1] == in(), kName, "w [out, in]", w.shape,
          y.shape);
  if (w.dtype == DType::kI8)
    want_vector(kName, "one scale per row of w", scales, out(), DType::kF32);
  else
    want_float(kName, "w", w);
  if (bias) want_vector(kName, "one bias per column of y", bias, out(), DType::kF32);
}

Cost Project::cost() const {
  return {2.0 * static_cast<double>(n()) * static_cast<double>(out()) * static_cast<double>(in()),
          bytes_of(x) + bytes_of(w) + bytes_of(scales) + bytes_of(bias) + bytes_of(y)};
}

void QuantizeRows::check() const {
  want_float(kName, "w", w);
  want_dtype(kName, "q", q, DType::kI8);
  require(q.shape == w.shape && q.shape.rank == 2, kName, "q and w [rows, columns]", q.shape, w.shape);
  want_vector(kName, "one scale per row", scales, w.shape[0], DType::kF32);
}

Cost QuantizeRows::cost() const {
  return {2 * static_cast<double>(w.elements()), 2 * bytes_of(w) + bytes_of(q) + bytes_of(scales)};
}

void WidenRows::check() const {
  want_dtype(kName, "w", w, DType::kF32);
  want_dtype(kName, "q", q, DType::kI8);
  require(q.shape == w.shape && q.shape.rank == 2, kName, "q and w [rows, columns]", q.shape, w.shape);
  want_vector(kName, "one scale per row", scales, w.shape[0], DType::kF32);
}

Cost WidenRows::cost() const {
  return {static_cast<double>(w.elements()), bytes_of(w) + bytes_of(q) + bytes_of(scales)};
}

}  // namespace megalith
