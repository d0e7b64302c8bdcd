#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// A problem, and what of its answer is given.
struct PlanRequest {
  PlanCommand command;  // with the lines of --cluster
  PlanProblem problem = {};
  Fixed fixed = {};
};
/// What a command asks for, which has been check()ed. kUsage when it contradicts itself or asks for what is
/// not planned; kDevice when "local" cannot be measured.
PlanRequest plan_request(PlanCommand);

}  // namespace megalith
