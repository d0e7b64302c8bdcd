#pragma once

#include <string>
#include <vector>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// An option of a launch line, without its dashes.
struct LaunchOption {
  std::string name;
  std::string value;    // empty: a flag
  bool decided = true;  // by the plan; otherwise the run's precision, or how the program works

  template <class V>
  void members(V&& visit) {  // see parallel/exchange.h
    visit(name, value, decided);
  }
};

/// The partition as Megatron's options, which megalith-pretrain accepts too; `ours`: uneven stages and ZeRO-2
/// in the form of our trainer's options.
std::vector<LaunchOption> cut_options(const PlanProblem&, const Candidate&, bool ours = false);

/// The same as text: "--tensor-model-parallel-size 8 …".
std::string launch_options(const PlanProblem&, const Candidate&, bool ours = false);

}  // namespace megalith
