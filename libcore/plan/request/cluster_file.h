#pragma once

#include "libcore/plan/request/world.h"

namespace megalith {

/// Reads --cluster's file for the values that the command leaves open: the device and its figures, and the
/// sizes of the world. kData for a line that gives anything else.
void take_cluster_file(PlanCommand&, GivenWorld&);

}  // namespace megalith
