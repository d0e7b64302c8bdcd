#pragma once

#include <string>
#include <vector>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// An option of a launch line, without its dashes.
struct LaunchOption {
  std::string name;
  std::string value;    // empty: a flag
  bool decided = true;  // chosen by the plan; false: given by the run's precision or program

  template <class V>
  void members(V&& visit) {  // for the exchange between ranks, see parallel/exchange.h
    visit(name, value, decided);
  }
};

/// The partition as options of Megatron, which megalith-pretrain accepts too. If `ours`, uneven stages and
/// ZeRO-2 are written as options of our trainer instead; for a tuning run, those of megalith-finetune.
std::vector<LaunchOption> cut_options(const PlanProblem&, const Candidate&, bool ours = false);

/// cut_options() as text: "--tensor-model-parallel-size 8 …".
std::string launch_options(const PlanProblem&, const Candidate&, bool ours = false);

}  // namespace megalith
