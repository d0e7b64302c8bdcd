#pragma once

#include "libcore/plan/request/world.h"

namespace megalith {

/// The device of --gpu in a world of the sizes told, else of one device; of a machine as many as are linked.
/// kUsage for a device that is not known or has no products in the format that is asked for.
Machine machine_of(const PlanCommand&, const GivenWorld&);

}  // namespace megalith
