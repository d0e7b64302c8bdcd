#include "libcore/train/run/step_interval.h"

#include "libcore/base/error.h"

namespace megalith {

StepIntervals step_intervals(const TrainConfig& train, const CheckpointConfig& checkpoint,
                             int64_t epoch_steps) {
  if (train.epoch_ends && epoch_steps <= 0)
    fail(ErrorKind::kUsage,
         "--at-epoch-ends: these data have no epochs of a known length; leave it out, and give "
         "--eval-interval and --save-interval");
  const auto interval = [&](int64_t every) {
    return StepInterval{
        .every = every, .first = train.from_zero ? 1 : 0, .also_every = train.epoch_ends ? epoch_steps : 0};
  };
  return {.evaluation = interval(train.eval_interval),
          .save = interval(checkpoint.save_interval.value_or(0))};
}

}  // namespace megalith
