#pragma once

#include <optional>
#include <string>

#include "libcore/plan/search/search.h"

namespace megalith {

/// Options that make a run fit in memory, and its best plan with them.
struct Remedy {
  PlanProblem problem;  // the problem with these options
  Plan plan;
  std::string options;  // as on a command line, where they take the place of the command's own
  std::string words;    // the options and their effect: "--micro-batch-size 2: frees 3.61 GB, …"
};

/// The change with which a command has a plan that fits, if it has none. `closest`: SearchResult::closest.
/// The following are tried in turn, until one is enough:
/// - if our trainer runs the plan on this machine, the trainer's own change (train/step/memory_limits.h);
/// - one option: another value of a choice that the command fixes, gradients in 16 bits, an allocator without
///   fragmentation, attention that keeps no scores, saves without a copy;
/// - two options;
/// - twice, four, eight or sixteen times as many devices;
/// - one option and more devices.
/// If several options are enough, the one with the fastest plan is returned; if several numbers of devices
/// are, the smallest. Once two million candidates have been priced, a step tries no more changes, so that an
/// answer takes seconds at most. Nothing if none is enough.
std::optional<Remedy> least_change_of_command(const PlanProblem&, const Fixed&, const Plan& closest);

/// The same for one plan: every choice of the plan counts as fixed.
std::optional<Remedy> least_change_of_plan(const PlanProblem&, const Plan&);

}  // namespace megalith
