#pragma once

#include <string>
#include <vector>

#include "libcore/plan/search/search.h"
#include "libcore/train/schedules/schedule.h"

namespace megalith {

/// One step of a pipeline stage, and its time.
struct PlayedStep {
  int stage = 0;
  Step step;
  double begin = 0, end = 0;  // seconds since the beginning of the step
};

/// A step of `plan` played through its pipeline: 1F1B or its interleaving in the trainer's order
/// (train/schedules/schedule.h), with each step as long as the time model says, waiting for its input from
/// the neighbours; at most `microbatches` microbatches.
std::vector<PlayedStep> play_pipeline(const PlanProblem&, const Plan&, int64_t microbatches);

/// For chrome://tracing and Perfetto: one complete event per step, stages as threads.
std::string chrome_trace(const std::vector<PlayedStep>&);

}  // namespace megalith
