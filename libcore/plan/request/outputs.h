#pragma once

#include "libcore/plan/request/plan_options.h"

namespace megalith {

/// kUsage when the command asks for outputs that what it asks for first (--verify-log, else --simulate, else
/// --emit) does not make, each by name.
void check_outputs(const PlanCommand&);

}  // namespace megalith
