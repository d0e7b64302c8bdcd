#pragma once

#include <string>
#include <vector>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// An option of a launch line, without its dashes.
struct LaunchOption {
  std::string name;
  std::string value;    // empty: a flag
  bool decided = true;  // by the plan; else the run's precision, or how the program works
};

/// The cut as Megatron's options, which megalith-pretrain takes too; `ours`: uneven stages and ZeRO-2 in our
/// trainer's words.
std::vector<LaunchOption> cut_options(const PlanProblem&, const Candidate&, bool ours = false);

/// The same as words: "--tensor-model-parallel-size 8 …".
std::string launch_options(const PlanProblem&, const Candidate&, bool ours = false);

}  // namespace megalith
