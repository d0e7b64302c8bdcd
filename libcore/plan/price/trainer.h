#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/plan/price/memory_estimate.h"

namespace megalith {

struct RunShape;        // train/step/layout.h
struct VocabularyForm;  // model/params.h

/// Whether this version's trainer can run a partition, and the memory that it then allocates.
struct TrainerAnswer {
  std::string refusal;  // the trainer's complaint, or the feature that it does not have; empty: the trainer
                        // can run the partition
  /// The exact memory of its fullest rank (run_memory), if the trainer can run the partition, or only lacks
  /// the memory for it.
  std::optional<WorstStage> rank;
  /// Options that the run needs beside those of the plan, as they continue a command line; empty: none.
  std::string options = {};
};
/// Describes our trainer on this machine's processor for the closed forms.
Software trainer_software();

/// The trainer's configuration of a run with this partition.
PretrainConfig trainer_configuration(const PlanProblem&, const Candidate&);
/// The shape of that run on the problem's devices. On GPUs the vocabulary includes its padding.
RunShape trainer_run(const PlanProblem&, const PretrainConfig&);
/// How that run places the vocabulary.
VocabularyForm vocabulary_form(const PlanProblem&);

/// The change that a run with this plan would name if it had too little memory (train/step/memory_limits.h).
struct ChangedRun {
  std::string options;  // as on a command line
  Candidate candidate;  // the plan with them
  SaveCopy save_copy = SaveCopy::kNone;
};
/// Nothing if the trainer does not run the plan, or none of its changes is enough.
std::optional<ChangedRun> least_change_of_run(const PlanProblem&, const Candidate&);

/// Why this version's trainer does not run the partition, however much memory there is; empty: it does.
std::string trainer_refusal(const PlanProblem&, const Candidate&);
TrainerAnswer ask_trainer(const PlanProblem&, const Candidate&);
/// As ask_trainer(), but also refuses plans for a program that does not take our options, and what this
/// version cannot train on the problem's devices (train/devices/trained_where.h), or not in their memory. A
/// run that has no memory for CUDA graphs only is one without them, unless the command asks for them.
TrainerAnswer ask_trainer_there(const PlanProblem&, const Candidate&);

/// What a plan needs on a device of its fullest stage: the trainer's own count if the problem is for it
/// (trained_here) and it runs the plan, otherwise that of the closed forms.
WorstStage fullest_stage(const PlanProblem&, const Candidate&, const LayerPrice&, const Layout&);
/// The estimates of all pipeline stages, by the same source as fullest_stage().
std::vector<MemoryEstimate> stage_estimates(const PlanProblem&, const Candidate&);

}  // namespace megalith
