#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// How the program works that is planned for: our trainer, or Megatron-LM with what the command says of its
/// kernels and what it overlaps. kUsage when options contradict each other.
Software software_of(const PlanCommand&);

}  // namespace megalith
