#include "libcore/train/run/step_interval.h"

namespace megalith {

StepInterval evaluation_interval(int64_t every, const StepCount& count) {
  return {.every = every, .first = count.from_zero ? 1 : 0};
}

StepInterval save_interval(const CheckpointConfig& config, const StepCount& count) {
  const bool names_from_zero = traits_of(config.format).from_zero;
  return {.every = config.save_interval.value_or(0),
          .first = count.from_zero || names_from_zero ? 1 : 0,
          .also_every = count.from_zero && names_from_zero ? count.epoch_steps : 0};
}

}  // namespace megalith
