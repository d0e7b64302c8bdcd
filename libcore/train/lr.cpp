#include "libcore/train/lr.h"

#include <cmath>
#include <numbers>

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
  return {.max = config.lr,
          .min = config.min_lr,
          .decay = config.decay,
          .warmup = config.warmup_steps() * config.global_batch,
          .decay_end = decay_iters * config.global_batch};
}

}  // namespace megalith
