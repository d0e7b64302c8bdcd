#include "libcore/ops/loss.h"

#include "libcore/ops/checks.h"

namespace megalith {
namespace {
void check_columns(const char* op, const ConstView& logits, int64_t columns) {
  want_float(op, "logits", logits);
  require(columns >= 0 && columns <= logits.shape.back(), op, "columns within the logits", columns,
          logits.shape);
}
}  // namespace

void SoftmaxStats::check() const {
  check_columns(kName, logits, columns);
  want_vector(kName, "max [n]", max, logits.shape.rows(), DType::kF32);
  want_vector(kName, "sum_exp [n]", sum_exp, logits.shape.rows(), DType::kF32);
}

// Comparison, subtraction, exponential and addition per entry.
Cost SoftmaxStats::cost() const {
  return {4.0 * static_cast<double>(logits.shape.rows()) * static_cast<double>(columns),
          bytes_of(logits) + bytes_of(max) + bytes_of(sum_exp)};
}

void SoftmaxRescale::check() const {
  const int64_t n = sum_exp.elements();
  want_vector(kName, "sum_exp [n]", sum_exp, n, DType::kF32);
  want_vector(kName, "from [n]", from, n, DType::kF32);
  want_vector(kName, "to [n]", to, n, DType::kF32);
}

// Subtraction, exponential and multiplication per entry.
Cost SoftmaxRescale::cost() const {
  return {3.0 * static_cast<double>(sum_exp.elements()),
          2 * bytes_of(sum_exp) + bytes_of(from) + bytes_of(to)};
}

void CrossEntropy::check() const {
  check_columns(kName, logits, columns);
  const int64_t n = logits.shape.rows();
  want_vector(kName, "loss [n]", loss, n, DType::kF32);
  want_vector(kName, "max [n]", max, n, DType::kF32);
  want_vector(kName, "sum_exp [n]", sum_exp, n, DType::kF32);
  want_vector(kName, "targets [n]", targets, n, DType::kI32);
  if (mask) want_vector(kName, "mask [n]", mask, n, DType::kF32);
  if (scale_at) want_vector(kName, "scale_at [1]", scale_at, 1, DType::kF32);
}

// Subtraction, exponential and multiplication per entry if the gradient is wanted; otherwise a few operations
// per row.
Cost CrossEntropy::cost() const {
  const double rows = static_cast<double>(logits.shape.rows());
  const double row_bytes =
      bytes_of(loss) + bytes_of(max) + bytes_of(sum_exp) + bytes_of(targets) + bytes_of(mask);
  if (!want_grad) return {3 * rows, row_bytes + rows * static_cast<double>(size_of(logits.dtype))};
  return {3 * rows * static_cast<double>(columns), row_bytes + 2 * bytes_of(logits)};
}

void SoftmaxLoss::check() const {
  stats().check();
  cross_entropy().check();
  require(columns > 0, kName, "at least one column", columns, logits.shape);
}

Cost SoftmaxLoss::cost() const {
  return {stats().cost().flops + cross_entropy().cost().flops,
          bytes_of(loss) + bytes_of(max) + bytes_of(sum_exp) + bytes_of(targets) + bytes_of(mask) +
              bytes_of(logits) * (want_grad ? 2 : 1)};
}

}  // namespace megalith
