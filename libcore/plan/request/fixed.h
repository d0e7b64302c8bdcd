#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// The values that the command fixes for sizes, recomputation and sharding. kUsage when they contradict each
/// other, or are not priced.
Fixed fixed_by(const PlanCommand&);

}  // namespace megalith
