#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// Checks the outputs that the command requests. kUsage, with a list, for outputs that its mode (the first
/// given of --verify-log, --simulate and --emit) does not produce. kUsage for an output file that is also an
/// input or the other output, or whose path is not a file.
void check_outputs(const PlanCommand&);

}  // namespace megalith
