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
  double begin = 0, end = 0;  // seconds since the training step began
};

/// Plays a training step of `plan` through its pipeline, with at most `microbatches` microbatches, in the
/// order of the trainer: 1F1B or interleaved 1F1B (train/schedules/schedule.h). Each forward or backward step
/// takes as long as in the time model, and begins when its input from the neighbour has arrived.
std::vector<PlayedStep> play_pipeline(const PlanProblem&, const Plan&, int64_t microbatches);

/// The steps as JSON for chrome://tracing and Perfetto: one complete event per step, with stages as threads.
std::string chrome_trace(const std::vector<PlayedStep>&);

}  // namespace megalith
