#pragma once

#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// How the planned program works: our trainer, or Megatron-LM with the kernels and overlaps that the command
/// gives. kUsage when options contradict each other.
Software software_of(const PlanCommand&, const Accelerator&);

}  // namespace megalith
