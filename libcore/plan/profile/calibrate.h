#pragma once

#include <string>

#include "libcore/plan/profile/rate_fit.h"

namespace megalith {

/// The plan that a profile is to serve.
struct CalibrationTarget {
  DeviceRates before;
  bool local = false;                         // --gpu local
  std::string dtype;                          // what it computes in: "fp32", "bf16", "fp16"
  int threads = 0;                            // of the CPU's ops
  double Coefficients::*attention = nullptr;  // as fitted_rates() takes it
};

/// The rates with which the points of a profile are predicted best, and to the log the points' error before,
/// and after by fits that leave out the points of the size which they predict, and the rates that changed;
/// with a warning where most points were not steady, or the fit misses points that it has not seen by more
/// than a half. kUsage when the profile is of another device, backend, dtype or number of threads than the
/// plan, when it has rates that the device cannot have, above or below, or when the fit predicts points that
/// it has not seen worse than the rates before.
DeviceRates calibrated(const DeviceProfile&, const CalibrationTarget&, const PointPricer&,
                       const std::string& path);

}  // namespace megalith
