#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// A problem, and the parts of its answer that the command fixes.
struct PlanRequest {
  PlanCommand command;  // the command, with the values of --cluster's file
  PlanProblem problem = {};
  Fixed fixed = {};
};
/// The request of a command after check(). kUsage when it contradicts itself or requests something that is
/// not planned; kDevice when this machine's processor (--gpu local) cannot be measured.
PlanRequest plan_request(PlanCommand);

}  // namespace megalith
