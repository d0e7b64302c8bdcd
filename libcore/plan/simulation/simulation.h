#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/plan/price/traffic.h"
#include "libcore/plan/search/search.h"

namespace megalith {

/// One training step of this version's trainer on devices that need not be present, in seconds. The parts are
/// those of the pipeline stage with the most work.
struct SimulatedStep {
  double seconds = 0;
  double work = 0;      // time in ops
  double tensor = 0;    // communication of tensor and context ranks on the compute stream
  double pipeline = 0;  // waiting for other stages, and messages
  /// What one rank of each pipeline stage gives to its groups, added up: as step_traffic().
  std::vector<GroupTraffic> traffic = {};
  /// The remaining seconds: reductions of gradients that the backward pass does not hide, exchanges of tensor
  /// ranks that products do not hide, the gather of parameters, the agreement on the step, copies.
  double rest() const { return seconds - work - tensor - pipeline; }
};

/// Which microbatches of a step the trainer runs. kRepeated: those of five periods of the pipeline; the
/// others repeat one of these periods on the same clocks and links, so the simulation's memory does not
/// depend on their number, and its time only by a few nanoseconds each. kEach: every one, with the same
/// result up to rounding.
enum class Microbatches { kRepeated, kEach };

/// Runs the trainer's own step (train/step/trainer.h: its layers, schedule, buckets and optimizer) on a
/// simulated clock, with one rank for each pipeline stage. The backend is dry: an op only takes the time of
/// op_seconds(). Communicators move no data and take the time of group_link(). Ranks along the other axes
/// would do the same at the same time, so they are not simulated. kUsage when the trainer does not support
/// the partition, and for a step of too many layers or samples (docs/planner.md).
SimulatedStep simulate_step(const PlanProblem&, const Candidate&,
                            Microbatches which = Microbatches::kRepeated);

/// The numbers of devices of --simulate: "64,1024". kUsage when one is not a number of devices.
std::vector<int> simulated_worlds(const std::string& list);

/// A number of devices, the best plan for it that the trainer runs, and that plan's step.
struct SimulatedWorld {
  int devices = 0;
  std::optional<Plan> plan = {};  // unset: `reason` says why
  SimulatedStep step = {};
  std::string reason = {};
};
/// One result for each of `worlds`, on machines like the problem's.
std::vector<SimulatedWorld> simulate_worlds(const PlanProblem&, const Fixed&, const std::vector<int>& worlds);

}  // namespace megalith
