#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// Sizes, recomputation and sharding as far as the command gives them. kUsage when they contradict each
/// other, or are not priced.
Fixed fixed_by(const PlanCommand&);

}  // namespace megalith
