#pragma once

#include <string>

#include "libcore/plan/profile/rate_fit.h"

namespace megalith {

/// The plan that a profile is used for.
struct CalibrationTarget {
  DeviceRates before;
  bool local = false;                         // --gpu local
  std::string dtype;                          // the plan's precision: "fp32", "bf16", "fp16"
  int threads = 0;                            // of the CPU's ops
  double Coefficients::*attention = nullptr;  // see fitted_rates()
};

/// The rates that predict the points of a profile best. Logs the rates that changed, and the error of the
/// predicted points: with the rates before, and with fits that have not seen the predicted points
/// (left_out()). Warns if most points were not steady, or if the fit misses unseen points by more than a
/// half. kUsage when the profile is for another device, backend, dtype or number of threads than the plan,
/// when it has rates that the device cannot have (too high or too low), or when the fit predicts unseen
/// points worse than the rates before.
DeviceRates calibrated(const DeviceProfile&, const CalibrationTarget&, const PointPricer&,
                       const std::string& path);

}  // namespace megalith
