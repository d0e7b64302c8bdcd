#pragma once

#include <string>

#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// Why a profile is unreliable, with numbers and advice, for a warning; empty if the times of most points
/// spread by at most a tenth of their medians. On a quiet machine they spread by one or two hundredths.
std::string unsteadiness(const DeviceProfile&);

}  // namespace megalith
