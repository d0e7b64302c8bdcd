#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// The sizes, recomputation and sharding that the command fixes. kUsage when they contradict each other or
/// are not priced.
Fixed fixed_by(const PlanCommand&);

}  // namespace megalith
