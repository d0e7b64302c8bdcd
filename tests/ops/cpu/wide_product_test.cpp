#include "libcore/ops/cpu/wide_product.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/case_parts.h"

namespace megalith::test {
namespace {

struct Case {
  GemmShape shape;
  DType out = DType::kF16;
  bool bias = false, accumulate = false;
};

/// oneDNN multiplies no fp16, so a product of it is a WideProduct on every processor.
std::string difference(const Case& given) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  Bed bed(stream);
  const GemmShape& s = given.shape;
  Values a = random_values(s.m * s.k, 1), b = random_values(s.k * s.n, 2), bias = random_values(s.n, 3),
         c = random_values(s.m * s.n, 4);
  Gemm op{.c = bed.put(given.out, {s.m, s.n}, c),
          .a = bed.put(DType::kF16, s.trans_a ? Shape{s.k, s.m} : Shape{s.m, s.k}, a),
          .b = bed.put(DType::kF16, s.trans_b ? Shape{s.n, s.k} : Shape{s.k, s.n}, b),
          .trans_a = s.trans_a,
          .trans_b = s.trans_b,
          .accumulate = given.accumulate};
  if (given.bias) op.bias = bed.put(given.out, {s.n}, bias);
  run(stream, op);
  Values want = reference_gemm(s, a, b);
  for (size_t i = 0; i < want.size(); ++i)
    want[i] += (given.bias ? bias[i % bias.size()] : 0) + (given.accumulate ? c[i] : 0);
  const double sum_error = 1e-7 * std::sqrt(static_cast<double>(s.k));
  return disagreement({"c", bed.get(op.c), want, tolerance_of(given.out) + sum_error});
}

// A panel has 512 rows: one less, one more, and several.
TEST(WideProduct, MultipliesPanelsOfRows) {
  for (const int64_t m : {511, 513, 1100}) {
    EXPECT_EQ(difference({.shape = {.m = m, .n = 40, .k = 70, .trans_b = true}, .bias = true}), "") << m;
    EXPECT_EQ(difference({.shape = {.m = m, .n = 33, .k = 17}, .accumulate = true}), "") << m;
    EXPECT_EQ(difference({.shape = {.m = m, .n = 33, .k = 17}, .out = DType::kF32, .accumulate = true}), "");
    EXPECT_EQ(difference({.shape = {.m = m, .n = 9, .k = 5, .trans_a = true, .trans_b = true}}), "") << m;
  }
}

TEST(WideProduct, AddsUpPanelsOfTheGradientOfWeights) {
  for (const int64_t k : {511, 513, 1100}) {
    const GemmShape shape{.m = 70, .n = 33, .k = k, .trans_a = true};
    for (const DType out : {DType::kF32, DType::kF16})
      for (const bool accumulate : {false, true})
        EXPECT_EQ(difference({.shape = shape, .out = out, .bias = !accumulate, .accumulate = accumulate}), "")
            << k << " " << name_of(out);
  }
}

}  // namespace
}  // namespace megalith::test
