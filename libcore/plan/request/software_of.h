#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// How the planned program works on a device: its code base's defaults, with the kernels, overlaps and
/// features that the command gives. kUsage when options contradict each other.
Software software_of(const PlanCommand&, const Accelerator&);

}  // namespace megalith
