#include "libcore/plan/profile/calibrate.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// A clock's and a counter's error, by which a rate may pass a data sheet's.
constexpr double kTolerance = 1.02;

std::string percent(double part) {
  return format_fixed(100 * part, 1) + " %";
}

void check_same(const DeviceProfile& profile, const CalibrationTarget& plan, const std::string& path) {
  const auto refuse = [&](const std::string& is, const std::string& wanted, const char* remedy) {
    fail(ErrorKind::kUsage, "--calibrate ", path, ": the profile is of ", is, ", the plan of ", wanted, "; ",
         remedy);
  };
  if (profile.device != plan.before.device.name)
    refuse(profile.device, plan.before.device.name, "give the --gpu that was measured, or its own profile");
  if (profile.dtype != plan.dtype)
    refuse(profile.dtype, plan.dtype, "measure with the plan's --bf16 or --fp16, or without");
  if (!plan.local) return;
  if (const std::string here = processor_name(); profile.processor != here)
    refuse(profile.processor, here + ", this machine's processor", "measure on this machine");
  if (profile.threads != plan.threads)
    refuse(concat(profile.threads, " threads"), concat(plan.threads), "give the same --threads to both");
}

/// A product faster than the device's data sheet says, or than ten times what was measured now.
void check_possible(const DeviceProfile& profile, const CalibrationTarget& plan, const std::string& path) {
  const Accelerator& device = plan.before.device;
  const double peak = profile.dtype == "fp32" ? device.float_flops : device.half_flops;
  const double most = plan.local ? 10 * peak : kTolerance * peak;
  for (const ProfilePoint& point : profile.points)
    if (point.kind == ProfiledKind::kProduct && point.flops / point.seconds > most)
      fail(ErrorKind::kUsage, "--calibrate ", path, ": a product of ", point.rows, " x ", point.columns,
           " x ", point.depth, " with ", format_fixed(point.flops / point.seconds / 1e9, 1),
           " GFLOP/s, more than the ", format_fixed(most / 1e9, 1), " that ", device.name,
           " can have; measure it again, or give the --gpu that was measured");
}

void check_bounds(const std::vector<FittedRate>& rates, const DeviceRates& fitted, const std::string& device,
                  const std::string& path) {
  for (const FittedRate& rate : rates) {
    const double value = rate.of(fitted);
    if (rate.firm && value >= rate.high)
      fail(ErrorKind::kUsage, "--calibrate ", path, ": ", rate.name, " would be ", value, ' ', rate.unit,
           " or more, wanted less than ", rate.high, " for ", device,
           "; measure it again, or give the --gpu that was measured");
  }
}

void tell_errors(const PointErrors& before, const PointErrors& after) {
  for (const auto& [kind, error] : before.kinds)
    log("  ", enum_name(kind), ": error of the points ", percent(error), " before, ",
        percent(after.kinds.at(kind)), " after");
  log("  all kinds: ", percent(before.mean), " before, ", percent(after.mean),
      " after, each point by a fit to the others");
}

void tell_rates(const std::vector<FittedRate>& rates, const DeviceRates& before, const DeviceRates& after) {
  for (const FittedRate& rate : rates)
    if (rate.of(before) != rate.of(after))
      log("  ", rate.name, ": ", format_scientific(rate.of(before), 2), " to ",
          format_scientific(rate.of(after), 2), ' ', rate.unit);
}

/// Without the points that say nothing of this plan: attention, where it keeps the scores.
std::vector<ProfilePoint> points_for(const DeviceProfile& profile, const CalibrationTarget& plan) {
  std::vector<ProfilePoint> points = profile.points;
  if (!plan.attention && plan.before.device.multiprocessors > 0)
    std::erase_if(points, [](const ProfilePoint& point) {
      return point.kind == ProfiledKind::kAttention || point.kind == ProfiledKind::kAttentionGradient;
    });
  return points;
}

}  // namespace

DeviceRates calibrated(const DeviceProfile& profile, const CalibrationTarget& plan, const PointPricer& price,
                       const std::string& path) {
  check_same(profile, plan, path);
  check_possible(profile, plan, path);
  const std::vector<ProfilePoint> points = points_for(profile, plan);
  const std::vector<FittedRate> rates = fitted_rates(plan.before, profile.dtype != "fp32", plan.attention);
  const DeviceRates fitted = fit_rates(points, plan.before, rates, price);
  check_bounds(rates, fitted, plan.before.device.name, path);
  std::vector<double> seconds(points.size());
  price(points, plan.before, seconds);
  const PointErrors before = errors_of(points, seconds);
  const PointErrors after = errors_of(points, left_out(points, plan.before, rates, price));
  log("calibrated by ", path, ": ", points.size(), " points of ", profile.device, ", ", profile.dtype,
      ", of ", profile.date);
  tell_errors(before, after);
  if (after.mean >= before.mean)
    fail(ErrorKind::kUsage, "--calibrate ", path, ": points that the fit has not seen would be missed by ",
         percent(after.mean), ", by ", percent(before.mean),
         " without it; leave the option out, or measure for longer (--seconds)");
  tell_rates(rates, plan.before, fitted);
  return fitted;
}

}  // namespace megalith
