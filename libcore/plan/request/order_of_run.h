#pragma once

#include <optional>

#include "libcore/plan/report/report.h"
#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The order of samples of the run that a command describes, on each of its nodes. Nothing if the command
/// names no indexed dataset or no length of the run. Also if the datasets are not on this machine, or if a
/// run would refuse them or their options; the log then says why.
std::optional<NodeOrder> order_of_run(const PlanRequest& request);

}  // namespace megalith
