#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// kUsage when the command requests outputs that its mode (the first given of --verify-log, --simulate and
/// --emit) does not produce, listing each, or when an output is an input, the other output, or not a file.
void check_outputs(const PlanCommand&);

}  // namespace megalith
