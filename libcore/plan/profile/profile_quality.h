#pragma once

#include <string>

#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// A warning that a profile is unreliable, with numbers and advice. Empty if the times of most points spread
/// by at most a tenth of their medians; on a quiet machine they spread by one or two hundredths.
std::string unsteadiness(const DeviceProfile&);

}  // namespace megalith
