#include "libcore/plan/profile/calibrate.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/price/kernel_rates.h"
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
  void plan_for(const char* gpu) {
    problem.precision = Precision::kHalf;
    problem.machine.device = find_accelerator(gpu);
    plan = {.before = {fitted_coefficients(), problem.machine.device},
            .dtype = "bf16",
            .threads = 2,
            .attention = flash_coefficient(problem.software.attention)};
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
  expect_part(all, "each point by a fit to those of other sizes");
  expect_part(all, "matrix rate: 1.00E+11 to 1.");
}

TEST(Calibrated, RefusesAProfileOfSomethingElse) {
  Calibrating calibrating;
  DeviceProfile profile = made_profile();
  profile.device = "H100-SXM-80GB";
  expect_part(calibrating.refusal(profile), "for \"H100-SXM-80GB\", the plan for this machine's processor");
  profile = made_profile();
  profile.dtype = "bf16";
  expect_part(calibrating.refusal(profile), "for bf16, the plan for fp32");
  profile = made_profile();
  profile.threads = 64;
  expect_part(calibrating.refusal(profile), "for 64 threads, the plan for 2");
  profile = made_profile();
  profile.processor = "Z80";
  expect_part(calibrating.refusal(profile), "for \"Z80\", the plan for");
  profile = made_profile();
  profile.backend = "cuda";
  expect_part(calibrating.refusal(profile), "for backend cuda, the plan for cpu");
}

TEST(Calibrated, RefusesARateThatTheDeviceCannotHave) {
  Calibrating calibrating;
  expect_part(calibrating.refusal(made_profile({.matrix_rate = 1e14})), "more than the 1000.0 that");
  expect_part(calibrating.refusal(made_profile({.bandwidth = 1e13})), "memory bandwidth would be");
  calibrating.plan_for("H100");
  expect_part(calibrating.refusal(test::made_gpu_profile(calibrating.plan.before.device.name, 2e15, 3e12)),
              "GFLOP/s, more than the 1008780.0 that H100-SXM-80GB");
}

// The rates are too low, as in a profile that was measured while the device did other work, or with a wrong
// clock.
TEST(Calibrated, RefusesRatesThatAreTooLowForTheDevice) {
  Calibrating slow;
  slow.plan_for("H100");
  DeviceProfile profile = test::made_gpu_profile(slow.plan.before.device.name, 700e12, 2.8e12);
  for (ProfilePoint& point : profile.points) point.seconds *= 100;
  expect_part(slow.refusal(profile), "sustained_clock would be 0.6 of peak or less, wanted more for H100");

  Calibrating local;
  profile = made_profile();
  for (ProfilePoint& point : profile.points) point.seconds *= 3000;
  expect_part(local.refusal(profile), "matrix rate would be 1e+09 FLOP/s or less, wanted more for this");
}

// What B200 and H100 reach in large products: 71 and 80 % of their data sheets' rates.
TEST(Calibrated, TakesAFastGpusProfile) {
  const std::tuple<const char*, double, double> kDevices[] = {{"B200", 1600e12, 6.6e12},
                                                              {"H100", 800e12, 2.9e12}};
  for (const auto& [name, flops, bandwidth] : kDevices) {
    Calibrating calibrating;
    calibrating.plan_for(name);
    const Accelerator& device = calibrating.plan.before.device;
    const DeviceProfile profile = test::made_gpu_profile(device.name, flops, bandwidth);
    double best = 0;
    for (const ProfilePoint& point : profile.points)
      if (point.kind == ProfiledKind::kProduct) best = std::max(best, point.flops / point.seconds);
    EXPECT_GT(best, (name == std::string("B200") ? 0.7 : 0.79) * device.half_flops);
    const DeviceRates rates = calibrating.take(profile);
    std::vector<double> seconds(profile.points.size());
    point_pricer(calibrating.problem)(profile.points, rates, seconds);
    for (size_t i = 0; i < seconds.size(); ++i) {
      const ProfilePoint& point = profile.points[i];
      if (point.kind != ProfiledKind::kProduct || point.flops < 1e12) continue;
      EXPECT_NEAR(seconds[i] / point.seconds, 1, 0.15) << name << ' ' << i;
    }
  }
}

TEST(Calibrated, RefusesMemoryThatNoCacheMakesSoFast) {
  Calibrating calibrating;
  calibrating.plan_for("H100");
  expect_part(
      calibrating.refusal(test::made_gpu_profile(calibrating.plan.before.device.name, 700e12, 10 * 3.35e12)),
      "GB/s, more than the 13400.0 that H100");
}

TEST(Calibrated, WarnsOfPointsThatWereNotSteady) {
  Calibrating calibrating;
  DeviceProfile profile = made_profile();
  calibrating.take(profile);
  EXPECT_EQ(join(calibrating.lines, "\n").find("warning"), std::string::npos);
  for (size_t i = 0; i < 61; ++i) profile.points[i].spread = 0.11;
  calibrating.take(profile);
  expect_part(join(calibrating.lines, "\n"),
              "warning: --calibrate p.json: the times of 61 of 120 points spread by more than a tenth");
}

// All times are five times as long, and in addition alternately three times as long and a third as long. A
// few rates cannot predict such times, but the fitted rates do better than the rates before the fit.
TEST(Calibrated, WarnsOfAFitThatMissesWhatItHasNotSeen) {
  Calibrating calibrating;
  DeviceProfile profile = made_profile();
  for (size_t i = 0; i < profile.points.size(); ++i) profile.points[i].seconds *= 5 * (i % 2 ? 3 : 1.0 / 3);
  calibrating.take(profile);
  const std::string all = join(calibrating.lines, "\n");
  expect_part(all, "warning: --calibrate p.json: points that the fit has not seen are missed by");
  expect_part(all, "measure while nothing else runs, or for longer than");
}

TEST(Calibrated, ShowsNoTerminalWhatAFileSays) {
  Calibrating calibrating;
  DeviceProfile profile = made_profile();
  profile.date = profile.version = "\x1b[31m" + std::string(1000, 'x');
  calibrating.take(profile);
  const std::string all = join(calibrating.lines, "\n");
  EXPECT_EQ(all.find('\x1b'), std::string::npos);
  EXPECT_EQ(all.find(std::string(200, 'x')), std::string::npos);
  profile.device = "\x1b[31m";
  EXPECT_EQ(calibrating.refusal(profile).find('\x1b'), std::string::npos);
  profile = made_profile();
  profile.processor = "\x1b[31m";
  EXPECT_EQ(calibrating.refusal(profile).find('\x1b'), std::string::npos);
}

// Products take alternately three times the predicted time and a third of it. A fit that leaves one product
// out follows the others, and so misses that product by more.
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
