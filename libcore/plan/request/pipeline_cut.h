#pragma once

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// Fixes what the command gives of the pipeline: the table of all stages, the layers of the first and last
/// stage, the chunks. kUsage when they contradict each other or the model.
void fix_pipeline(PlanRequest&);

}  // namespace megalith
