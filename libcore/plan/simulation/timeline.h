#pragma once

#include <string>
#include <vector>

#include "libcore/plan/search/search.h"
#include "libcore/train/schedules/schedule.h"

namespace megalith {

/// One step of a pipeline stage, and when it is made.
struct PlayedStep {
  int stage = 0;
  Step step;
  double begin = 0, end = 0;  // seconds from the step's begin
};

/// The pipeline of a step of `plan` played through: 1F1B or its interleaving in the order that the trainer
/// takes (train/schedules/schedule.h), each step as long as the time model says, waiting for what it needs
/// from its neighbours; at most `microbatches` microbatches.
std::vector<PlayedStep> play_pipeline(const PlanProblem&, const Plan&, int64_t microbatches);

/// For chrome://tracing and Perfetto: one complete event a step, stages as threads.
std::string chrome_trace(const std::vector<PlayedStep>&);

}  // namespace megalith
