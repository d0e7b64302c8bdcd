#include "libcore/train/lr.h"

#include <cmath>
#include <numbers>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

double LrSchedule::at(int64_t samples) const {
  const auto done = static_cast<double>(samples);
  if (warmup > 0 && done <= warmup) return max * done / warmup;
  if (decay == LrDecay::kConstant) return max;
  if (samples > decay_end) return min;
  const double ratio = (done - warmup) / (static_cast<double>(decay_end) - warmup);
  const double share =
      decay == LrDecay::kLinear ? 1.0 - ratio : 0.5 * (std::cos(std::numbers::pi * ratio) + 1.0);
  return min + share * (max - min);
}

LrSchedule make_lr_schedule(const TrainConfig& config) {
  const int64_t decay_iters = config.decay_iters.value_or(config.iters.value_or(0));
  const int64_t batch = config.global_batch;
  LrSchedule schedule{
      .max = config.lr, .min = config.min_lr, .decay = config.decay, .decay_end = decay_iters * batch};
  schedule.warmup = config.warmup_fraction ? *config.warmup_fraction * static_cast<double>(schedule.decay_end)
                                           : static_cast<double>(config.warmup_iters * batch);
  if (decay_iters > 0 && schedule.warmup >= static_cast<double>(schedule.decay_end))
    fail(ErrorKind::kUsage, "warm-up of ", format_double(schedule.warmup / static_cast<double>(batch)),
         " steps is not shorter than --lr-decay-iters ", decay_iters,
         "; lower --lr-warmup-iters or raise --lr-decay-iters");
  return schedule;
}

}  // namespace megalith
