#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "libcore/base/random.h"
#include "libcore/ops/cuda/element_maths.h"
#include "tests/ops/reference.h"

namespace megalith::cuda {
namespace {

constexpr double kUlp = 6e-8;  // of fp32

// Expected bits are from the formats' definitions: bf16 has 1 sign, 8 exponent and 7 fraction bits; fp16 has
// 1, 5 and 10.
TEST(CudaMaths, RoundsToBf16ToNearestEven) {
  const auto bits = [](float x) { return narrow<Bf16>(x).bits; };
  EXPECT_EQ(bits(1.0f), 0x3f80);
  EXPECT_EQ(bits(-2.0f), 0xc000);
  EXPECT_EQ(bits(1.00390625f), 0x3f80);
  EXPECT_EQ(bits(1.01171875f), 0x3f82);
  EXPECT_EQ(bits(0x1p-133f), 0x0001);
  EXPECT_EQ(bits(3.4e38f), 0x7f80);
  EXPECT_EQ(bits(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_TRUE(std::isnan(widen(narrow<Bf16>(std::nanf("")))));
}

TEST(CudaMaths, RoundsToFp16ToNearestEven) {
  const auto bits = [](float x) { return narrow<Half>(x).bits; };
  EXPECT_EQ(bits(1.0f), 0x3c00);
  EXPECT_EQ(bits(65504.0f), 0x7bff);
  EXPECT_EQ(bits(65519.0f), 0x7bff);
  EXPECT_EQ(bits(65520.0f), 0x7c00);
  EXPECT_EQ(bits(-1e30f), 0xfc00);
  EXPECT_EQ(bits(0x1p-14f), 0x0400);
  EXPECT_EQ(bits(0x1.ffep-15f), 0x0400);
  EXPECT_EQ(bits(0x1p-24f), 0x0001);
  EXPECT_EQ(bits(-0x1.8p-24f), 0x8002);
  EXPECT_EQ(bits(0x1p-25f), 0x0000);
  EXPECT_EQ(bits(0x1.002p0f), 0x3c00);
  EXPECT_EQ(bits(0x1.006p0f), 0x3c02);
  EXPECT_TRUE(std::isnan(widen(narrow<Half>(std::nanf("")))));
}

TEST(CudaMaths, KeepsEveryFp16AndBf16ThereAndBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent < 31 || fraction == 0) {
      const double size = exponent == 0    ? std::ldexp(fraction, -24)
                          : exponent == 31 ? std::numeric_limits<double>::infinity()
                                           : std::ldexp(1024 + fraction, exponent - 25);
      const float value = widen(Half{bits});
      ASSERT_EQ(static_cast<double>(value), bits & 0x8000 ? -size : size) << bits;
      ASSERT_EQ(narrow<Half>(value).bits, bits);
    }
    if (!std::isnan(widen(Bf16{bits}))) {
      ASSERT_EQ(narrow<Bf16>(widen(Bf16{bits})).bits, bits);
    }
  }
}

/// The slope of f by central differences in fp64.
template <class F>
double slope(const F& f, double x) {
  constexpr double kStep = 1e-5;
  return (f(x + kStep) - f(x - kStep)) / (2 * kStep);
}

TEST(CudaMaths, ActivationsAndTheirSlopesFollowTheReference) {
  using F = ActivationFunction;
  struct Case {
    F function;
    float (*value)(float);
    float (*slope)(float);
  };
  const Case cases[] = {{F::kGeluTanh, gelu_tanh, gelu_tanh_slope},
                        {F::kGelu, gelu_erf, gelu_erf_slope},
                        {F::kQuickGelu, quick_gelu, quick_gelu_slope},
                        {F::kSilu, silu, silu_slope},
                        {F::kRelu, relu, relu_slope},
                        {F::kSquaredRelu, squared_relu, squared_relu_slope}};
  for (int i = -120; i <= 120; ++i) {
    const float x = static_cast<float>(i) / 10;
    const double wide = static_cast<double>(x), tolerance = 16 * kUlp * (1 + std::abs(wide));
    for (const Case& one : cases) {
      const auto reference = [&](double at) { return test::reference_activation(at, one.function); };
      EXPECT_NEAR(one.value(x), reference(wide), tolerance) << x;
      if (i == 0 && (one.function == F::kRelu || one.function == F::kSquaredRelu)) continue;  // kinks
      EXPECT_NEAR(one.slope(x), slope(reference, wide), tolerance) << x;
    }
  }
}

TEST(CudaMaths, DrawsThePhiloxBitsOfBase) {
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t a = i * 2654435761u, b = ~a * 40503u;
    const Words mine = philox_words({{a, b, i, a ^ b}}, b + 1, a + 7);
    const auto want = philox({a, b, i, a ^ b}, {b + 1, a + 7});
    for (size_t word = 0; word < 4; ++word) ASSERT_EQ(mine.word[word], want[word]) << i;
  }
}

TEST(CudaMaths, DropsTheElementsThatTheRuleDrops) {
  constexpr double kDrop = 0.25;
  const MaskKey key{.seed = 1234,
                    .layer_site = 6 * 16 + 2,
                    .last_kept = static_cast<uint32_t>((1 - kDrop) * 0x1p32 - 1),
                    .scale = static_cast<float>(1 / (1 - kDrop))};
  for (const int64_t sample : {int64_t{3}, (int64_t{5} << 32) + 7})
    for (int64_t position = 0; position < 8; ++position)
      for (int64_t column = 0; column < 65; ++column)
        ASSERT_NEAR(mask_at(key, sample, position, static_cast<uint64_t>(column)),
                    test::reference_mask({kDrop, 1234, 6, 2, sample, position, column}), kUlp)
            << sample << " " << position << " " << column;
}

// The rule of torch.optim.AdamW in fp64.
TEST(CudaMaths, StepsAsAdamW) {
  const double lr = 1e-2, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1, scale = 0.5;
  const double bias1 = 1 - beta1 * beta1 * beta1, bias2 = 1 - beta2 * beta2 * beta2;  // step 3
  const AdamRates rates{.grad_scale = static_cast<float>(scale),
                        .decay = static_cast<float>(1 - lr * decay),
                        .beta2 = static_cast<float>(beta2),
                        .step_size = static_cast<float>(lr / bias1),
                        .root_bias2 = static_cast<float>(std::sqrt(bias2)),
                        .eps = static_cast<float>(eps),
                        .one_minus_beta1 = static_cast<float>(1 - beta1),
                        .one_minus_beta2 = static_cast<float>(1 - beta2)};
  for (const double grad : {-3.0, 0.0, 1e-3, 40.0}) {
    const double p = 1.5, m = beta1 * 0.25 + (1 - beta1) * grad * scale;
    const double v = beta2 * 0.125 + (1 - beta2) * grad * scale * grad * scale;
    const double want = p * (1 - lr * decay) - lr * (m / bias1) / (std::sqrt(v / bias2) + eps);
    const AdamElement next = adam_step(rates, {1.5f, 0.25f, 0.125f}, static_cast<float>(grad));
    EXPECT_NEAR(next.m, m, 8 * kUlp * (1 + std::abs(m))) << grad;
    EXPECT_NEAR(next.v, v, 8 * kUlp * (1 + v)) << grad;
    EXPECT_NEAR(next.master, want, 8 * kUlp * (1 + std::abs(want))) << grad;
  }
}

}  // namespace
}  // namespace megalith::cuda
