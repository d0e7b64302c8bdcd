#include "libcore/ops/activation.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {
// Floating-point operations per element of y; an exponential, a division or an error function counts as one.
// All activations are counted as the most common one, the tanh form of GELU.
constexpr double kActivateFlops = 8, kActivateGradFlops = 14, kSwiGluFlops = 5, kSwiGluGradFlops = 10;

void check_gated(const char* op, const ConstView& x, const ConstView& y) {
  want_float(op, "x", x);
  want_dtype(op, "y, of x's dtype,", y, x.dtype);
  require(x.elements() == 2 * y.elements() && y.shape.back() > 0 && x.shape.back() % y.shape.back() == 0, op,
          "x [n, 2, f] for y [n, f]", x.shape, y.shape);
}
}  // namespace

void Activate::check() const {
  want_float(kName, "x", x);
  want_alike(kName, "y and x alike", y, x);
}

Cost Activate::cost() const {
  return {static_cast<double>(x.elements()) * kActivateFlops, bytes_of(x) + bytes_of(y)};
}

void ActivateGrad::check() const {
  want_float(kName, "x", x);
  want_alike(kName, "dx and x alike", dx, x);
  want_alike(kName, "dy and x alike", dy, x);
}

Cost ActivateGrad::cost() const {
  return {static_cast<double>(x.elements()) * kActivateGradFlops, bytes_of(x) + bytes_of(dy) + bytes_of(dx)};
}

void SwiGlu::check() const {
  check_gated(kName, x, y);
}

Cost SwiGlu::cost() const {
  return {static_cast<double>(y.elements()) * kSwiGluFlops, bytes_of(x) + bytes_of(y)};
}

void SwiGluGrad::check() const {
  check_gated(kName, x, dy);
  require(dx.elements() == x.elements() && dx.dtype == x.dtype && dx, kName, "dx and x alike", dx.shape,
          x.shape);
}

Cost SwiGluGrad::cost() const {
  return {static_cast<double>(dy.elements()) * kSwiGluGradFlops, bytes_of(x) + bytes_of(dy) + bytes_of(dx)};
}

}  // namespace megalith
