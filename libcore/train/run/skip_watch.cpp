#include "libcore/train/run/skip_watch.h"

#include <cmath>

#include "libcore/base/log.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr int64_t kMaxInARow = 3;

}  // namespace

std::optional<std::string> SkipWatch::lost(const StepFigures& step, bool can_fall) {
  if (!step.skipped || can_fall) {
    in_a_row_ = 0;
    return std::nullopt;
  }
  const int64_t first = step.consumed_samples - step.samples, last = step.consumed_samples - 1;
  if (in_a_row_ == 0) first_ = first;
  const std::string what = concat("loss ", step.loss, ", gradient norm ", step.grad_norm);
  warn("iteration ", step.iteration, " is skipped: ", what, "; samples ", first, " to ", last);
  if (++in_a_row_ < kMaxInARow) return std::nullopt;
  const std::string remedy =
      train_.fp16 && train_.fixed_loss_scale() && std::isfinite(step.loss)
          ? concat("lower --loss-scale ", *train_.loss_scale, ", or leave it out for a dynamic one,")
          : std::string("lower --lr or raise --lr-warmup-iters");
  return concat("iterations ", step.iteration - kMaxInARow + 1, " to ", step.iteration, " were not finite (",
                what, "), samples ", first_, " to ", last, " of the training order; ", remedy);
}

}  // namespace megalith
