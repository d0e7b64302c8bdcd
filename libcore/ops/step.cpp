#include "libcore/ops/step.h"

#include "libcore/ops/checks.h"

namespace megalith {

void ScaledSum::check() const {
  want_vector(kName, "out [1]", out, 1, DType::kF64);
  want_dtype(kName, "x", x, DType::kF32);
  if (scale_at) want_vector(kName, "scale_at [1]", scale_at, 1, DType::kF32);
}

Cost ScaledSum::cost() const {
  return {static_cast<double>(x.elements()), bytes_of(x)};
}

void DecideStep::check() const {
  want_vector(kName, "scalars [StepScalar::kCount]", scalars, StepScalar::kCount, DType::kF64);
  require(max_norm >= 0, kName, "max_norm of 0 or more", max_norm, 0);
}

Cost DecideStep::cost() const {
  return {0, 2 * bytes_of(scalars)};
}

View step_scalar(const View& scalars, int which) {
  return scalars.rows(which, which + 1);
}

}  // namespace megalith
