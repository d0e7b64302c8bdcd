#pragma once

#include <optional>
#include <string>

#include "libcore/plan/candidate.h"

namespace megalith {

/// Whether this version's trainer runs a cut, and what it allocates then.
struct TrainerAnswer {
  std::string refusal;          // the trainer's own complaint, or what it has no option for; empty: it runs
  std::optional<size_t> bytes;  // of its fullest rank (run_memory), when it runs
};
TrainerAnswer ask_trainer(const PlanProblem&, const Candidate&);

}  // namespace megalith
