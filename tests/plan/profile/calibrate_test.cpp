#include "libcore/plan/profile/calibrate.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/kernel_rates.h"
#include "tests/plan/profile/profiles.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

using test::made_profile;

struct Calibrating {
  PlanProblem problem;
  CalibrationTarget plan;
  std::vector<std::string> lines;

  Calibrating() {
    problem.precision = Precision::kFloat32;
    problem.machine.device = {.name = kLocalDevice,
                              .half_flops = 1e11,
                              .float_flops = 1e11,
                              .memory = 8e9,
                              .memory_bandwidth = 1e10};
    plan = {.before = {fitted_coefficients(), problem.machine.device},
            .local = true,
            .dtype = "fp32",
            .threads = 2};
  }
  DeviceRates take(const DeviceProfile& profile) {
    const test::LogLines log;
    const DeviceRates rates = calibrated(profile, plan, point_pricer(problem), "p.json");
    lines = log.lines;
    return rates;
  }
  std::string refusal(const DeviceProfile& profile) {
    try {
      take(profile);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "taken";
  }
};

void expect_part(const std::string& text, const char* part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Calibrated, SaysTheErrorBeforeAndAfter) {
  Calibrating calibrating;
  const DeviceRates rates = calibrating.take(made_profile());
  EXPECT_NEAR(rates.device.float_flops / 150e9, 1, 0.1);
  const std::string all = join(calibrating.lines, "\n");
  expect_part(all, "calibrated by p.json: 120 points");
  expect_part(all, "attention-gradient: error of the points");
  expect_part(all, "each point by a fit to the others");
  expect_part(all, "matrix rate: 1.00E+11 to 1.");
}

TEST(Calibrated, RefusesAProfileOfSomethingElse) {
  Calibrating calibrating;
  DeviceProfile profile = made_profile();
  profile.device = "H100-SXM-80GB";
  expect_part(calibrating.refusal(profile), "of H100-SXM-80GB, the plan of this machine's processor");
  profile = made_profile();
  profile.dtype = "bf16";
  expect_part(calibrating.refusal(profile), "of bf16, the plan of fp32");
  profile = made_profile();
  profile.threads = 64;
  expect_part(calibrating.refusal(profile), "of 64 threads, the plan of 2");
  profile = made_profile();
  profile.processor = "Z80";
  expect_part(calibrating.refusal(profile), "of Z80, the plan of");
}

TEST(Calibrated, RefusesARateThatTheDeviceCannotHave) {
  Calibrating calibrating;
  expect_part(calibrating.refusal(made_profile({.matrix_rate = 1e14})), "more than the 1000.0 that");
  expect_part(calibrating.refusal(made_profile({.bandwidth = 1e13})), "memory bandwidth would be");
  DeviceProfile h100 = made_profile({.matrix_rate = 2e15, .bandwidth = 1e13, .start = 1e-6});
  h100.dtype = "bf16";
  h100.device = find_accelerator("H100").name;
  calibrating.plan.before.device = find_accelerator("H100");
  calibrating.plan.local = false;
  calibrating.plan.dtype = "bf16";
  expect_part(calibrating.refusal(h100), "GFLOP/s, more than the");
}

// Products that take three times as long as predicted and a third, by turns: a fit without one of them goes
// to the others, and misses it by more.
TEST(Calibrated, RefusesAFitThatWorsensThePoints) {
  Calibrating calibrating;
  DeviceProfile profile = made_profile();
  profile.points.erase(std::remove_if(profile.points.begin(), profile.points.end(),
                                      [](const auto& point) { return point.kind != ProfiledKind::kProduct; }),
                       profile.points.end());
  profile.points.resize(2, profile.points.front());
  std::vector<double> seconds(profile.points.size());
  point_pricer(calibrating.problem)(profile.points, calibrating.plan.before, seconds);
  for (size_t i = 0; i < seconds.size(); ++i) profile.points[i].seconds = seconds[i] * (i % 2 ? 3 : 1.0 / 3);
  expect_part(calibrating.refusal(profile), "points that the fit has not seen would be missed by");
}

}  // namespace
}  // namespace megalith
