#pragma once

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// Fixes the parts of the pipeline's partition that the command gives: the table of all stages, the layers of
/// the first and last stage, the chunks. kUsage when they contradict each other or the model.
void fix_pipeline(PlanRequest&);

}  // namespace megalith
