#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// kUsage when the command asks for outputs that what it asks for first (--verify-log, else --simulate, else
/// --emit) does not make, each by name, or when an output is an input, the other output, or no file.
void check_outputs(const PlanCommand&);

}  // namespace megalith
