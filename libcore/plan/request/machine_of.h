#pragma once

#include "libcore/plan/request/world.h"

namespace megalith {

/// The devices of --gpu in a world of the given sizes. If a size is not given, the world has one device, and
/// a machine has as many devices as the link joins. kUsage for an unknown device, or for one without products
/// in the requested format.
Machine machine_of(const PlanCommand&, const GivenWorld&);

}  // namespace megalith
