#pragma once

#include <optional>
#include <string>

#include "libcore/plan/search/search.h"

namespace megalith {

/// Options with which a run fits in memory, and its best plan with them.
struct Remedy {
  PlanProblem problem;  // the problem with these options
  Plan plan;
  std::string options;  // as on a command line, where they take the place of the command's own
  std::string words;    // the options and what they do: "--micro-batch-size 2: frees 3.61 GB, …"
};

/// What makes a command fit for which no plan does. `closest`: SearchResult::closest. All changes of a single
/// option are tried: of a choice that the command fixes, gradients in 16 bits, an allocator without
/// fragmentation, attention that keeps no scores, saves without a copy. If none is enough, twice, four,
/// eight or sixteen times as many devices; then pairs of options; then each option with more devices. Of the
/// options that are enough, the one with the fastest plan is returned; of the numbers of devices, the
/// smallest. Where our trainer runs the plan on this machine, the trainer's own change
/// comes first (train/step/memory_limits.h).
std::optional<Remedy> least_change_of_command(const PlanProblem&, const Fixed&, const Plan& closest);

/// The same for one plan: every choice of the plan counts as fixed.
std::optional<Remedy> least_change_of_plan(const PlanProblem&, const Plan&);

}  // namespace megalith
