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

/// Plays a training step of `plan` through its pipeline, with at most `microbatches` microbatches. The order
/// is the trainer's, 1F1B or interleaved 1F1B (train/schedules/schedule.h). Each forward or backward step
/// takes the time model's time and begins when its input from the neighbour is there.
std::vector<PlayedStep> play_pipeline(const PlanProblem&, const Plan&, int64_t microbatches);

/// For chrome://tracing and Perfetto: one complete event per step, stages as threads.
std::string chrome_trace(const std::vector<PlayedStep>&);

}  // namespace megalith
