#include "libcore/plan/profile/rate_fit.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "libcore/plan/price/kernel_rates.h"
#include "tests/plan/profile/profiles.h"

namespace megalith {
namespace {

using test::made_profile;
using test::MadeDevice;

/// A processor as the planner measures it in a third of a second.
PlanProblem local_problem() {
  PlanProblem p;
  p.precision = Precision::kFloat32;
  p.machine.device = {
      .name = kLocalDevice, .half_flops = 1e11, .float_flops = 1e11, .memory = 8e9, .memory_bandwidth = 1e10};
  return p;
}

struct Fitting {
  PlanProblem problem = local_problem();
  DeviceRates before{fitted_coefficients(), problem.machine.device};
  std::vector<FittedRate> rates = fitted_rates(before, false, nullptr);
  PointPricer price = point_pricer(problem);

  DeviceRates fit(const std::vector<ProfilePoint>& points) const {
    return fit_rates(points, before, rates, price);
  }
};

TEST(FitRates, FindsTheRatesOfADeviceOfAnotherFormula) {
  const Fitting fitting;
  const MadeDevice made;
  const DeviceRates fitted = fitting.fit(made_profile(made).points);
  EXPECT_NEAR(fitted.device.float_flops / made.matrix_rate, 1, 0.1);
  EXPECT_NEAR(fitted.device.memory_bandwidth * fitted.coefficients.memory_rate / made.bandwidth, 1, 0.1);
  EXPECT_NEAR(fitted.device.attention_share * fitted.device.float_flops / (made.attention * made.matrix_rate),
              1, 0.1);
  EXPECT_NEAR(fitted.coefficients.flash_backward, made.backward, 0.05);
  EXPECT_NEAR(fitted.device.half_depth, made.half_depth, 0.35 * made.half_depth);
  EXPECT_NEAR(fitted.device.op_start / made.start, 1, 0.2);
  EXPECT_EQ(fitted.device.half_flops, 1e11) << "nothing was measured in 16 bits";
}

TEST(FitRates, IsNotLedAstrayByAFewPoints) {
  const Fitting fitting;
  std::vector<ProfilePoint> points = made_profile().points;
  const DeviceRates clean = fitting.fit(points);
  for (size_t i = 0; i < points.size(); i += 11) points[i].seconds *= 6;
  const DeviceRates fitted = fitting.fit(points);
  EXPECT_NEAR(fitted.device.float_flops / clean.device.float_flops, 1, 0.12);
  EXPECT_NEAR(fitted.device.memory_bandwidth / clean.device.memory_bandwidth, 1, 0.15);
}

TEST(FitRates, LeavesRatesOfWhichPointsSayNothing) {
  const Fitting fitting;
  std::vector<ProfilePoint> points = made_profile().points;
  std::erase_if(points, [](const auto& point) { return point.kind != ProfiledKind::kProduct; });
  const DeviceRates fitted = fitting.fit(points);
  EXPECT_EQ(fitted.device.attention_share, fitting.before.device.attention_share);
  EXPECT_EQ(fitted.coefficients.flash_backward, fitting.before.coefficients.flash_backward);
  EXPECT_NEAR(fitted.device.float_flops / 150e9, 1, 0.1);
}

TEST(FitRates, StaysWithinTheBounds) {
  const Fitting fitting;
  const DeviceRates fast = fitting.fit(made_profile({.matrix_rate = 1e14}).points);
  for (const FittedRate& rate : fitting.rates) {
    EXPECT_GE(rate.of(fast), rate.low) << rate.name;
    EXPECT_LE(rate.of(fast), rate.high) << rate.name;
  }
  EXPECT_EQ(fast.device.float_flops, 1e12);  // ten times what was measured before
  EXPECT_EQ(fitting.fit(made_profile({.backward = 0.1}).points).coefficients.flash_backward,
            0.5);  // the lower bound
}

// The only point of a kind is predicted with the rates from before the fit.
TEST(LeftOut, HasNotSeenThePointThatItPredicts) {
  const Fitting fitting;
  const std::vector<ProfilePoint> points = {
      {.kind = ProfiledKind::kStart, .op = "gelu", .rows = 1, .columns = 64, .seconds = 1e-4, .samples = 3}};
  EXPECT_NEAR(fitting.fit(points).device.op_start, 1e-4, 2e-6);
  EXPECT_NEAR(left_out(points, fitting.before, fitting.rates, fitting.price).front(), 1e-6, 2e-7);
}

ProfilePoint product(const char* form, int64_t rows, double seconds) {
  ProfilePoint point{.kind = ProfiledKind::kProduct, .op = form, .rows = rows, .columns = 512};
  point.depth = 512;
  point.flops = 2.0 * 512 * 512 * static_cast<double>(rows);
  point.seconds = seconds;
  return point;
}

// Each form of a product would predict the other, so both are left out together and the rates from before the
// fit remain.
TEST(LeftOut, HasNotSeenAnotherFormOfTheSameProduct) {
  const Fitting fitting;
  const std::vector<ProfilePoint> points = {product("forward", 512, 1e-2),
                                            product("input-gradient", 512, 1e-2)};
  std::vector<double> before(points.size());
  fitting.price(points, fitting.before, before);
  ASSERT_LT(before[0], 5e-3);
  for (const double seconds : left_out(points, fitting.before, fitting.rates, fitting.price))
    EXPECT_NEAR(seconds / before[0], 1, 0.05);
}

// As many sizes of products as a file may have: a separate fit for each size would take minutes.
TEST(LeftOut, OfManySizesMakesNoMoreThanAFewHundredFits) {
  const Fitting fitting;
  std::vector<ProfilePoint> points;
  for (size_t i = 1; i <= kMostPoints; ++i)
    points.push_back(product("forward", static_cast<int64_t>(i), 1e-3));
  size_t prices = 0;
  const PointPricer constant = [&](std::span<const ProfilePoint>, const DeviceRates&, std::span<double> out) {
    std::fill(out.begin(), out.end(), 1e-3);
    ++prices;
  };
  const std::vector<double> all = left_out(points, fitting.before, fitting.rates, constant);
  EXPECT_EQ(std::count(all.begin(), all.end(), 1e-3), static_cast<std::ptrdiff_t>(kMostPoints));
  // No step improves the loss: each fit tries both directions of each rate with every size of step, of which
  // the first fit has 9 and the others 6.
  const size_t a_fit = 2 * fitting.rates.size() * 9 + 2;
  EXPECT_LT(prices, (kMostFits + 1) * a_fit);
}

// B200 has less power per FLOP/s than an A100, to which the clock is relative: at the upper bound of the
// coefficient it would sustain 67.5 % of its peak.
TEST(FittedRates, OfAGpuAllowItsDataSheetsPeak) {
  for (const char* const name : {"B200", "H100", "A100-SXM-80GB"}) {
    DeviceRates rates{fitted_coefficients(), find_accelerator(name)};
    const std::vector<FittedRate> fitted = fitted_rates(rates, true, nullptr);
    ASSERT_EQ(fitted.front().name, "sustained_clock");
    fitted.front().of(rates) = fitted.front().high;
    PlanProblem problem;
    problem.machine.device = rates.device;
    problem.coefficients = &rates.coefficients;
    EXPECT_NEAR(sustained_flops(problem), 0.98 * rates.device.half_flops, 1e9) << name;
  }
}

TEST(FittedRates, OfAGpuAreThePlannersCoefficientsWithinTheirBounds) {
  const DeviceRates h100{fitted_coefficients(), find_accelerator("H100")};
  const std::vector<FittedRate> rates = fitted_rates(h100, true, &Coefficients::flash2_rate);
  EXPECT_EQ(rates.size(), 8u);
  for (const FittedRate& rate : rates) {
    ASSERT_NE(rate.coefficient, nullptr) << rate.name;
    EXPECT_GE(rate.of(h100), rate.low) << rate.name;
    EXPECT_LE(rate.of(h100), rate.high) << rate.name;
  }
  EXPECT_EQ(fitted_rates(h100, true, nullptr).size(), 5u) << "scores that are kept";
}

// One of two points of a kind is predicted at 1.44 times its time, and the other correctly: their geometric
// mean is 1.2. One point of another kind is predicted at half its time: 2.
TEST(ErrorsOf, CountsEachKindTheSame) {
  std::vector<ProfilePoint> points(3);
  points[0].kind = points[1].kind = ProfiledKind::kMemory;
  for (ProfilePoint& point : points) point.seconds = 10;
  const PointErrors errors = errors_of(points, std::vector<double>{14.4, 10, 5});
  EXPECT_NEAR(errors.kinds.at(ProfiledKind::kMemory), 0.2, 1e-12);
  EXPECT_NEAR(errors.kinds.at(ProfiledKind::kStart), 1, 1e-12);
  EXPECT_NEAR(errors.mean, std::sqrt(1.2 * 2) - 1, 1e-12);
}

}  // namespace
}  // namespace megalith
