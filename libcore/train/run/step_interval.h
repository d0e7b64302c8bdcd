#pragma once

#include <cstdint>

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/train_config.h"

namespace megalith {

/// The steps of a run after which an evaluation or a save is due.
struct StepInterval {
  int64_t every = 0;  // due after first + k * every steps; 0: this rule does not apply
  int64_t first = 0;
  int64_t also_every = 0;  // also due after multiples of this; 0: this rule does not apply

  /// Whether the evaluation or save is due after `iteration` steps.
  bool due_at(int64_t iteration) const {
    return (every > 0 && (iteration - first) % every == 0) || (also_every > 0 && iteration % also_every == 0);
  }
};

/// What a run does only after some of its steps.
struct StepIntervals {
  StepInterval evaluation, save;
};

/// When a run evaluates and when it saves. `epoch_steps`: number of steps in an epoch; 0: unknown. kUsage for
/// --at-epoch-ends without a known epoch.
StepIntervals step_intervals(const TrainConfig&, const CheckpointConfig&, int64_t epoch_steps);

}  // namespace megalith
