#pragma once

#include "libcore/plan/profile/rate_fit.h"
#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The rates to plan with: those of --coefficients, --calibrate and --anchor; a profile of this machine's
/// processor also describes the device. kUsage and kData for invalid files.
DeviceRates rates_of(const PlanRequest&);

}  // namespace megalith
