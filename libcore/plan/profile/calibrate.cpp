#include "libcore/plan/profile/calibrate.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/plan/profile/profile_quality.h"

namespace megalith {
namespace {

/// The factor by which a measured rate may exceed the data sheet's, for errors of the clock and of op counts.
constexpr double kTolerance = 1.02;
/// A GPU's cache may hold a part of what a memory-bound op reads and writes, which makes the op up to this
/// many times faster. A processor's caches may do more: there the fitted bandwidth is checked instead.
constexpr double kCached = 4;
/// The error on unseen points above which plans are doubtful.
constexpr double kPoor = 0.5;
/// The number of characters shown of a word from the file.
constexpr size_t kShown = 60;

std::string shown(const std::string& word) {
  return quote(shortened(word, kShown));
}

std::string percent(double part) {
  return format_fixed(100 * part, 1) + " %";
}

void check_same(const DeviceProfile& profile, const CalibrationTarget& plan, const std::string& path) {
  const auto refuse = [&](const std::string& is, const std::string& wanted, const char* remedy) {
    fail(ErrorKind::kUsage, "--calibrate ", path, ": the profile is for ", is, ", the plan for ", wanted,
         "; ", remedy);
  };
  if (profile.device != plan.before.device.name)
    refuse(shown(profile.device), plan.before.device.name,
           "give the --gpu that was measured, or its own profile");
  if (profile.dtype != plan.dtype)
    refuse(profile.dtype, plan.dtype, "measure with the plan's --bf16 or --fp16, or without");
  if (const char* const backend = plan.local ? "cpu" : "cuda"; profile.backend != backend)
    refuse("backend " + profile.backend, backend, "measure the device again");
  if (!plan.local) return;
  if (const std::string here = processor_name(); profile.processor != here)
    refuse(shown(profile.processor), here + ", this machine's processor", "measure on this machine");
  if (profile.threads != plan.threads)
    refuse(concat(profile.threads, " threads"), concat(plan.threads), "give the same --threads to both");
}

/// Refuses rates above those of the device's data sheet; for this machine's processor, above ten times the
/// rates measured now.
void check_possible(const DeviceProfile& profile, const CalibrationTarget& plan, const std::string& path) {
  const Accelerator& device = plan.before.device;
  const double peak = profile.dtype == "fp32" ? device.float_flops : device.half_flops;
  const double most = plan.local ? 10 * peak : kTolerance * peak;
  const double most_bytes = kCached * device.memory_bandwidth;
  const auto refuse = [&](const std::string& what, double rate, double possible, const char* unit) {
    fail(ErrorKind::kUsage, "--calibrate ", path, ": ", what, " with ", format_fixed(rate / 1e9, 1), unit,
         ", more than the ", format_fixed(possible / 1e9, 1), " that ", device.name,
         " can have; measure it again, or give the --gpu that was measured");
  };
  for (const ProfilePoint& point : profile.points) {
    const double flops = point.flops / point.seconds, bytes = point.bytes / point.seconds;
    if (point.kind == ProfiledKind::kProduct && flops > most)
      refuse(concat("a product of ", point.rows, " x ", point.columns, " x ", point.depth), flops, most,
             " GFLOP/s");
    if (!plan.local && point.kind == ProfiledKind::kMemory && bytes > most_bytes)
      refuse(concat(point.op, " of ", point.rows, " x ", point.columns), bytes, most_bytes, " GB/s");
  }
}

void check_bounds(const std::vector<FittedRate>& rates, const CalibrationTarget& plan,
                  const DeviceRates& fitted, const std::string& path) {
  const auto refuse = [&](const FittedRate& rate, const char* beyond, const char* wanted) {
    fail(ErrorKind::kUsage, "--calibrate ", path, ": ", rate.name, " would be ", rate.of(fitted), ' ',
         rate.unit, beyond, ", wanted ", wanted, " for ", plan.before.device.name,
         "; measure it again while nothing else runs, or give the --gpu that was measured");
  };
  for (const FittedRate& rate : rates) {
    const double value = rate.of(fitted);
    if (value == rate.of(plan.before)) continue;  // the points say nothing about this rate
    if (rate.firm_high && value >= rate.high) refuse(rate, " or more", "less");
    if (rate.firm_low && value <= rate.low) refuse(rate, " or less", "more");
  }
}

void tell_errors(const PointErrors& before, const PointErrors& after) {
  for (const auto& [kind, error] : before.kinds)
    log("  ", enum_name(kind), ": error of the points ", percent(error), " before, ",
        percent(after.kinds.at(kind)), " after");
  log("  all kinds: ", percent(before.mean), " before, ", percent(after.mean),
      " after, each point by a fit to those of other sizes");
}

void tell_rates(const std::vector<FittedRate>& rates, const DeviceRates& before, const DeviceRates& after) {
  for (const FittedRate& rate : rates)
    if (rate.of(before) != rate.of(after))
      log("  ", rate.name, ": ", format_scientific(rate.of(before), 2), " to ",
          format_scientific(rate.of(after), 2), ' ', rate.unit);
}

void warn_of_poor(const DeviceProfile& profile, const PointErrors& after, const std::string& path) {
  if (const std::string why = unsteadiness(profile); !why.empty()) warn("--calibrate ", path, ": ", why);
  if (after.mean > kPoor)
    warn("--calibrate ", path, ": points that the fit has not seen are missed by ", percent(after.mean),
         ", more than ", percent(kPoor),
         ", and plans may be too; measure while nothing else runs, or for "
         "longer than ",
         format_duration(profile.seconds), " (--seconds)");
}

/// The points that apply to this plan. On a GPU, those of attention do not if the plan's kernel keeps the
/// scores.
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
  DeviceRates fitted = fit_rates(points, plan.before, rates, price);
  check_bounds(rates, plan, fitted, path);
  std::vector<double> seconds(points.size());
  price(points, plan.before, seconds);
  const PointErrors before = errors_of(points, seconds);
  const PointErrors after = errors_of(points, left_out(points, plan.before, rates, price));
  log("calibrated by ", path, ": ", points.size(), " points of ", profile.device, ", ", profile.dtype,
      "; measured ", shown(profile.date), " by version ", shown(profile.version), ", ", profile.points.size(),
      " of a grid of ", profile.grid, " in ", format_duration(profile.seconds));
  tell_errors(before, after);
  if (after.mean >= before.mean)
    fail(ErrorKind::kUsage, "--calibrate ", path, ": points that the fit has not seen would be missed by ",
         percent(after.mean), ", by ", percent(before.mean),
         " without it; leave the option out, or measure for longer (--seconds)");
  warn_of_poor(profile, after, path);
  tell_rates(rates, plan.before, fitted);
  return fitted;
}

}  // namespace megalith
