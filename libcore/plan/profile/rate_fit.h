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

/// What the prices of kernels depend on: a device, and what was fitted to measured runs.
struct DeviceRates {
  Coefficients coefficients;
  Accelerator device;
};

/// Seconds of each point with these rates, in the points' order.
using PointPricer =
    std::function<void(std::span<const ProfilePoint>, const DeviceRates&, std::span<double> seconds)>;

/// A rate that points may change, within its physical bounds: a coefficient, or a number of the device.
struct FittedRate {
  std::string name, unit;
  double Coefficients::*coefficient = nullptr;
  double Accelerator::*device = nullptr;  // when it is not a coefficient
  double low = 0, high = 0;
  bool firm_low = false, firm_high = false;  // a fit that ends there belongs to another device

  double& of(DeviceRates& rates) const {
    return coefficient ? rates.coefficients.*coefficient : rates.device.*device;
  }
  double of(const DeviceRates& rates) const {
    return coefficient ? rates.coefficients.*coefficient : rates.device.*device;
  }
};

/// The rates that a profile determines. For a processor these are the device's own numbers, the matrix rate
/// and the bandwidth up to ten times those of `before`; for another device the planner's coefficients within
/// their bounds (coefficient_table). An exception is `sustained_clock`, which is an A100's: it may be what
/// the device needs to sustain the most that a plan assumes (kMostSustained). `attention`: the rate of the
/// plan's attention kernel, nullptr for one that keeps the scores, about which a profile says nothing.
std::vector<FittedRate> fitted_rates(const DeviceRates& before, bool half, double Coefficients::*attention);

/// The error for the points of each kind: by how much the larger of predicted and measured exceeds the other,
/// 0.2 for 20 %, geometric mean; and the mean over kinds. So half the time is as wrong as twice the time, and
/// a few points do not dominate.
struct PointErrors {
  std::map<ProfiledKind, double> kinds;
  double mean = 0;
};
PointErrors errors_of(std::span<const ProfilePoint>, std::span<const double> predicted);

/// The rates that predict the points best. They minimise the sum of Huber losses of the errors' logarithms,
/// in which each kind counts the same, and of a pull to `before` so weak that a rate changes wherever points
/// say something about it.
DeviceRates fit_rates(std::span<const ProfilePoint>, const DeviceRates& before, std::span<const FittedRate>,
                      const PointPricer&);

/// Seconds of each point as predicted by a fit to all points of other kinds and sizes (PointKey): the two
/// forms of one product would predict each other. With more than kMostFits keys several are left out
/// together.
std::vector<double> left_out(std::span<const ProfilePoint>, const DeviceRates& before,
                             std::span<const FittedRate>, const PointPricer&);
constexpr size_t kMostFits = 256;  // more than the number of keys in a profile of the whole grid

}  // namespace megalith
