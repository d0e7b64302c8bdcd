#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "libcore/plan/device/coefficients.h"
#include "libcore/plan/device/machine.h"
#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// The rates on which the prices of kernels depend: a device, and the coefficients fitted to measured runs.
struct DeviceRates {
  Coefficients coefficients;
  Accelerator device;
};

/// Sets `seconds` to the times of the points with these rates, in the points' order.
using PointPricer =
    std::function<void(std::span<const ProfilePoint>, const DeviceRates&, std::span<double> seconds)>;

/// A rate that a fit may change within its physical bounds: a coefficient, or a number of the device.
struct FittedRate {
  std::string name, unit;
  double Coefficients::*coefficient = nullptr;
  double Accelerator::*device = nullptr;  // set if `coefficient` is not
  double low = 0, high = 0;
  /// Whether a fit that ends at this bound shows that the profile is of another device.
  bool firm_low = false, firm_high = false;

  double& of(DeviceRates& rates) const {
    return coefficient ? rates.coefficients.*coefficient : rates.device.*device;
  }
  double of(const DeviceRates& rates) const {
    return coefficient ? rates.coefficients.*coefficient : rates.device.*device;
  }
};

/// The rates that a profile determines. For a processor these are the device's own numbers; its matrix rate
/// and bandwidth may be up to ten times those of `before`. For another device these are the planner's
/// coefficients, within their bounds (coefficient_table). One bound is raised: that of `sustained_clock`,
/// which is relative to an A100, goes up to the value with which the device sustains the share of its peak
/// that a plan assumes at most (kMostSustained). `attention`: the rate of the plan's attention kernel;
/// nullptr for a kernel that keeps the scores, about which a profile says nothing.
std::vector<FittedRate> fitted_rates(const DeviceRates& before, bool half, double Coefficients::*attention);

/// The errors of predicted times: the geometric mean over the points of each kind, and the mean over the
/// kinds. A point's error is the ratio of the larger to the smaller of its predicted and measured times,
/// minus 1. So a prediction of half the time counts as much as one of twice the time, and a few points do not
/// dominate.
struct PointErrors {
  std::map<ProfiledKind, double> kinds;
  double mean = 0;
};
PointErrors errors_of(std::span<const ProfilePoint>, std::span<const double> predicted);

/// The rates that predict the points best. They minimise Huber losses of the logarithms of predicted over
/// measured times, in which each kind has the same weight, plus a pull towards `before`. The pull is so weak
/// that a rate stays only where the points say nothing about it.
DeviceRates fit_rates(std::span<const ProfilePoint>, const DeviceRates& before, std::span<const FittedRate>,
                      const PointPricer&);

/// Seconds of each point as predicted by a fit without all points of the same key (PointKey), since another
/// form of the same product would give the answer away. With more than kMostFits keys, one fit leaves out the
/// points of several keys.
std::vector<double> left_out(std::span<const ProfilePoint>, const DeviceRates& before,
                             std::span<const FittedRate>, const PointPricer&);
constexpr size_t kMostFits = 256;  // more than the number of keys in a profile of the whole grid

}  // namespace megalith
