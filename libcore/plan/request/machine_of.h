#pragma once

#include "libcore/plan/request/world.h"

namespace megalith {

/// The device of --gpu in a world of the given sizes, otherwise of one device; a machine has as many devices
/// as are linked. kUsage for an unknown device or one without products in the requested format.
Machine machine_of(const PlanCommand&, const GivenWorld&);

}  // namespace megalith
