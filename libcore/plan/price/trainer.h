#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/plan/price/memory_estimate.h"

namespace megalith {

/// Whether this version's trainer runs a cut, and what it allocates then.
struct TrainerAnswer {
  std::string refusal;  // the trainer's own complaint, or what it has no option for; empty: it runs
  std::optional<WorstStage> rank;  // its fullest rank, to the byte (run_memory), when it runs
};
/// What the trainer does, as far as the closed forms know it, for a plan of this machine's processor.
Software trainer_software();

/// The run of a cut, as its options would say it.
PretrainConfig trainer_configuration(const PlanProblem&, const Candidate&);

TrainerAnswer ask_trainer(const PlanProblem&, const Candidate&);

/// What a plan takes of a device on its fullest stage: the trainer's own count where the problem is its
/// (trained_here) and it runs the plan, else the closed forms'.
WorstStage fullest_stage(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);
/// The same of every pipeline stage.
std::vector<MemoryEstimate> stage_estimates(const PlanProblem&, const Candidate&);

}  // namespace megalith
