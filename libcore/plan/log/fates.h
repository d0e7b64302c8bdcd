#pragma once

#include <span>

#include "libcore/options/cli.h"

namespace megalith {

/// Options of experts that change nothing of a plan: how a router scores and logs, which kernels run.
std::span<const IgnoredOption> ignored_expert_options();

/// Options of Megatron-LM that no field has: which change nothing of a plan, and which are refused because
/// they would. `trains_here`: the run is our trainer's, whose own lists then say what they mean.
void add_fates(Options&, bool trains_here);

}  // namespace megalith
