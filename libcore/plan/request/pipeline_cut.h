#pragma once

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The stages of the pipeline as far as the command gives them: tables, first and last ones, chunks. kUsage
/// when they contradict each other or the model.
void fix_pipeline(PlanRequest&);

}  // namespace megalith
