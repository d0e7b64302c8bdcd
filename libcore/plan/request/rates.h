#pragma once

#include "libcore/plan/profile/rate_fit.h"
#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The rates to plan with: those of --coefficients, --calibrate and --anchor; a profile of this machine's
/// processor also says what the device is. kUsage and kData for files that say something else.
DeviceRates rates_of(const PlanRequest&);

}  // namespace megalith
