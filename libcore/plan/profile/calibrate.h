#pragma once

#include <string>

#include "libcore/plan/profile/rate_fit.h"

namespace megalith {

/// The plan that a profile is used for.
struct CalibrationTarget {
  DeviceRates before;
  bool local = false;                         // --gpu local
  std::string dtype;                          // the plan's precision: "fp32", "bf16", "fp16"
  int threads = 0;                            // number of threads of the CPU's ops
  double Coefficients::*attention = nullptr;  // rate of the plan's attention kernel, see fitted_rates()
};

/// Fits the rates to a profile, so that they predict its points best. Logs the rates that changed, and two
/// errors of predictions: that of the rates before, and that of fits which have not seen the predicted points
/// (left_out()). Warns if most points were not steady, or if the fit misses unseen points by more than a
/// half.
/// kUsage when the profile is for another device, backend, dtype or number of threads than the plan, when it
/// has rates that the device cannot have (too high or too low), or when the fit predicts unseen points worse
/// than the rates before.
DeviceRates calibrated(const DeviceProfile&, const CalibrationTarget&, const PointPricer&,
                       const std::string& path);

}  // namespace megalith
