#pragma once

#include <string>

#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// What makes a profile a poor one, with numbers and what to do, for a warning; empty where most points'
/// times spread by no more than a tenth of their medians. A quiet machine's spread by a hundredth or two.
std::string unsteadiness(const DeviceProfile&);

}  // namespace megalith
