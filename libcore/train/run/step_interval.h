#pragma once

#include <cstdint>

#include "libcore/config/checkpoint_config.h"

namespace megalith {

/// The steps of a run after which an evaluation or a save is due.
struct StepInterval {
  int64_t every = 0;  // due when first + k * every steps are done; 0: never by this rule
  int64_t first = 0;
  int64_t also_every = 0;  // also due at the multiples of this; 0: none

  /// Whether it is due when `iteration` steps are done.
  bool due_at(int64_t iteration) const {
    return (every > 0 && (iteration - first) % every == 0) || (also_every > 0 && iteration % also_every == 0);
  }
};

/// How a run counts its steps.
struct StepCount {
  bool from_zero = false;   // an observer numbers the steps from 0, and something is due after step 0
  int64_t epoch_steps = 0;  // steps of one epoch; 0: unknown
};

StepInterval evaluation_interval(int64_t every, const StepCount&);
/// If both the steps and the names of checkpoints are counted from 0 (FormatTraits::from_zero), a save is
/// also due at the end of each epoch.
StepInterval save_interval(const CheckpointConfig&, const StepCount&);

}  // namespace megalith
