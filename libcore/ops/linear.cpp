#include "libcore/ops/linear.h"

#include "libcore/ops/checks.h"

namespace megalith {

void Gemm::check() const {
  want_float(kName, "c", c);
  want_float(kName, "a", a);
  want_dtype(kName, "b, of a's dtype,", b, a.dtype);
  require(c.dtype == DType::kF32 || c.dtype == a.dtype, kName, "c fp32 or of a's dtype", name_of(c.dtype),
          name_of(a.dtype));
  const int64_t a_rows = trans_a ? a.shape.back() : a.shape.rows();
  const int64_t b_rows = trans_b ? b.shape.back() : b.shape.rows();
  const int64_t b_columns = trans_b ? b.shape.rows() : b.shape.back();
  require(a_rows == m(), kName, "as many rows in c as in op(a)", c.shape, a.shape);
  require(b_columns == n(), kName, "as many columns in c as in op(b)", c.shape, b.shape);
  require(b_rows == k(), kName, "equal inner dimensions of op(a) and op(b)", a.shape, b.shape);
  if (!bias) return;
  require(bias.elements() == n(), kName, "one bias per column of c", bias.shape, c.shape);
  require(bias.dtype == c.dtype || bias.dtype == a.dtype, kName, "bias of c's or a's dtype",
          name_of(bias.dtype), name_of(c.dtype));
  require(!accumulate, kName, "no bias when accumulating", bias.shape, c.shape);
}

Cost Gemm::cost() const {
  return {2.0 * static_cast<double>(m()) * static_cast<double>(n()) * static_cast<double>(k()),
          bytes_of(a) + bytes_of(b) + bytes_of(bias) + bytes_of(c) * (accumulate ? 2 : 1)};
}

void BiasGrad::check() const {
  want_float(kName, "dy", dy);
  want_vector(kName, "dbias [h]", dbias, dy.shape.back(), DType::kF32);
}

Cost BiasGrad::cost() const {
  return {static_cast<double>(dy.elements()), bytes_of(dy) + 2 * bytes_of(dbias)};
}

}  // namespace megalith
