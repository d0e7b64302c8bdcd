#include "libcore/train/run/step_interval.h"

#include <algorithm>

namespace megalith {

StepInterval evaluation_interval(int64_t every, const StepNumbering& numbering) {
  return {.every = every, .first = numbering.first_due};
}

StepInterval save_interval(const CheckpointConfig& config, const StepNumbering& numbering,
                           int64_t epoch_steps) {
  const FormatTraits format = traits_of(config.format);
  return {.every = config.save_interval.value_or(0),
          .first = std::max(numbering.first_due, format.first_due),
          .also_every = numbering.epoch_ends && format.epoch_ends ? epoch_steps : 0};
}

}  // namespace megalith
