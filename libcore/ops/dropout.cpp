#include "libcore/ops/dropout.h"

#include "libcore/ops/checks.h"

namespace megalith {

void DropoutKey::check(const char* op, int64_t batch) const {
  require(p >= 0 && p < 1, op, "a dropout probability from 0 to below 1", p, 1);
  if (p == 0) return;
  want_vector(op, "one sample number per sequence", samples, batch, DType::kI64);
  require(site < kSites, op, "a dropout site below", site, kSites);
  require(rows.valid(), op, "positions from 0 on, in order", rows.first, rows.jump);
}

void Dropout::check() const {
  want_float(kName, "x", x);
  require(x.shape.rank == 3, kName, "x [s, b, h]", x.shape, y.shape);
  want_alike(kName, "y and x alike", y, x);
  if (residual) want_alike(kName, "residual and x alike", residual, x);
  key.check(kName, x.shape[1]);
}

// A multiplication and a comparison per element, plus an addition for the residual. The random bits are not
// floating point, so they do not count.
Cost Dropout::cost() const {
  return {static_cast<double>(x.elements()) * ((key.p > 0 ? 2 : 0) + (residual ? 1 : 0)),
          bytes_of(x) + bytes_of(y) + bytes_of(residual)};
}

}  // namespace megalith
