#pragma once

#include "libcore/plan/request/world.h"

namespace megalith {

/// Takes what the command leaves open from --cluster's file: the device and its figures, and the sizes of the
/// world. kData for any other line.
void take_cluster_file(PlanCommand&, GivenWorld&);

}  // namespace megalith
