#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/plan/price/memory_estimate.h"

namespace megalith {

/// Whether this version's trainer runs a partition, and what it then allocates.
struct TrainerAnswer {
  std::string refusal;  // the trainer's own complaint, or what it has no option for; empty: it runs
  std::optional<WorstStage> rank;  // its fullest rank, to the byte (run_memory), when it runs
};
/// What the trainer does, as far as the closed forms model it, for a plan of this machine's processor.
Software trainer_software();

/// The run of a partition, as its options would set it.
PretrainConfig trainer_configuration(const PlanProblem&, const Candidate&);

TrainerAnswer ask_trainer(const PlanProblem&, const Candidate&);

/// What a plan needs on a device of its fullest stage: the trainer's own count if the problem is for it
/// (trained_here) and it runs the plan, otherwise that of the closed forms.
WorstStage fullest_stage(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);
/// The same for every pipeline stage.
std::vector<MemoryEstimate> stage_estimates(const PlanProblem&, const Candidate&);

}  // namespace megalith
