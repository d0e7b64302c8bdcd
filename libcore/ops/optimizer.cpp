#include "libcore/ops/optimizer.h"

#include "libcore/ops/checks.h"

namespace megalith {

void SumSquares::check() const {
  want_vector(kName, "out [1]", out, 1, DType::kF64);
  want_float(kName, "x", x);
}

Cost SumSquares::cost() const {
  return {2.0 * static_cast<double>(x.elements()), bytes_of(x)};
}

void AdamW::check() const {
  const int64_t n = master.elements();
  want_dtype(kName, "master", master, DType::kF32);
  want_vector(kName, "m [n]", m, n, m.dtype == DType::kBf16 ? DType::kBf16 : DType::kF32);
  want_vector(kName, "v [n]", v, n, DType::kF32);
  want_vector(kName, "grad [n]", grad, n, DType::kF32);
  want_vector(kName, "scalars [StepScalar::kCount]", scalars, StepScalar::kCount, DType::kF64);
  if (!value) return;
  require(value.elements() == n, kName, "value [n]", value.shape, master.shape);
  require(value.dtype == DType::kBf16 || value.dtype == DType::kF16, kName, "value bf16 or fp16",
          name_of(value.dtype), "no fp32: the model then uses master");
}

// Per element: scale 1, decay 1, m 3, v 4, root and denominator 3, update 3.
Cost AdamW::cost() const {
  return {15.0 * static_cast<double>(master.elements()),
          2 * (bytes_of(master) + bytes_of(m) + bytes_of(v)) + bytes_of(grad) + bytes_of(value)};
}

}  // namespace megalith
