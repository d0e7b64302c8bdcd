#include "libcore/config/train_config.h"

#include <algorithm>
#include <limits>

#include "libcore/config/model_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/thread_limit.h"

namespace megalith {

void TrainConfig::finish() {
  if (!iters && samples && global_batch > 0) iters = *samples / global_batch;
  if (!decay_iters && iters && *iters > 0) decay_iters = iters;
  if (recompute_activations && recompute == Recompute::kNone) recompute = Recompute::kSelective;
  if (recompute_all) {
    recompute = Recompute::kFull;
    if (!recompute_method) recompute_method = "uniform";
    if (!recompute_layers) recompute_layers = 1;
  }
}

void TrainConfig::finish(const ParallelConfig& parallel) {
  if (global_batch == 0)
    global_batch = static_cast<int>(std::min<int64_t>(
        int64_t{micro_batch} * parallel.data * accumulation.value_or(1), std::numeric_limits<int>::max()));
  finish();
}

double TrainConfig::warmup_steps() const {
  if (!warmup_fraction) return static_cast<double>(warmup_iters);
  return *warmup_fraction * static_cast<double>(decay_iters.value_or(0));
}

namespace {
void validate_length(const TrainConfig& t, Problems& problems) {
  if (!t.iters && !t.samples) problems.add("--train-iters is missing (or --train-samples)");
  if (t.iters && t.samples && t.global_batch > 0 && *t.iters != *t.samples / t.global_batch)
    problems.add("--train-iters ", *t.iters, " and --train-samples ", *t.samples,
                 " contradict each other; give one of them");
}

void validate_schedule(const TrainConfig& t, Problems& problems) {
  if (t.lr == 0) problems.add("--lr is missing");
  if (t.min_lr > t.lr) problems.add("--min-lr ", t.min_lr, " is greater than --lr ", t.lr);
  if (t.warmup_fraction && t.warmup_iters > 0)
    problems.add("--lr-warmup-iters ", t.warmup_iters, " and --lr-warmup-fraction ", *t.warmup_fraction,
                 " contradict each other; give one of them");
  else if (t.decay_iters && t.warmup_steps() >= static_cast<double>(*t.decay_iters))
    problems.add("the warm-up takes ", t.warmup_steps(), " steps, but --lr-decay-iters is ", *t.decay_iters,
                 "; shorten --lr-warmup-iters");
}

/// Megatron takes a fixed loss scale with --bf16 too, and reads the options of a dynamic one only with
/// --fp16.
void validate_loss_scale(const TrainConfig& t, Problems& problems) {
  if (t.fp16 && t.bf16) problems.add("--fp16 and --bf16 contradict each other; give one of them");
  if (t.fixed_loss_scale() && !t.fp16 && !t.bf16)
    problems.add("--loss-scale ", *t.loss_scale, " needs --fp16 or --bf16: fp32 is trained without one");
  const TrainConfig plain;
  const auto check = [&](const char* option, auto value, auto otherwise) {
    if (value == otherwise) return;
    if (!t.fp16)
      problems.add(option, ' ', value, " needs --fp16, which alone has a dynamic loss scale; leave it out");
    else if (t.fixed_loss_scale())
      problems.add(option, ' ', value, " is of a dynamic loss scale, --loss-scale ", *t.loss_scale,
                   " of a fixed one; give one of them");
  };
  check("--initial-loss-scale", t.initial_loss_scale, plain.initial_loss_scale);
  check("--min-loss-scale", t.min_loss_scale, plain.min_loss_scale);
  check("--loss-scale-window", t.loss_scale_window, plain.loss_scale_window);
  check("--hysteresis", t.hysteresis, plain.hysteresis);
  if (t.fp16 && t.min_loss_scale > t.initial_loss_scale)
    problems.add("--min-loss-scale ", t.min_loss_scale, " is greater than --initial-loss-scale ",
                 t.initial_loss_scale);
}

void validate_recompute(const TrainConfig& t, Problems& problems) {
  if (t.recompute == Recompute::kFull && !t.recompute_method)
    problems.add("--recompute-granularity full needs --recompute-method uniform or block");
  if (t.recompute != Recompute::kFull && (t.recompute_method || t.recompute_layers))
    problems.add("--recompute-method and --recompute-num-layers need --recompute-granularity full");
}
}  // namespace

void TrainConfig::validate(Problems& problems) const {
  if (micro_batch == 0) problems.add("--micro-batch-size is missing");
  require_possible_threads(threads, "threads", problems);
  validate_length(*this, problems);
  validate_schedule(*this, problems);
  validate_loss_scale(*this, problems);
  validate_recompute(*this, problems);
  if (!trace.empty() && trace_end <= trace_begin)
    problems.add("--profile-step-end ", trace_end, " is not after --profile-step-start ", trace_begin,
                 ", so that --trace ", trace, " would hold no step");
}

void TrainConfig::validate(const ParallelConfig& parallel, Problems& problems) const {
  const int64_t step = int64_t{micro_batch} * parallel.data;
  if (step > 0 && global_batch % step != 0)
    problems.add("--global-batch-size ", global_batch, " is not a multiple of --micro-batch-size ",
                 micro_batch, " * data-parallel size ", parallel.data, nearest_multiples(global_batch, step));
  else if (accumulation && step > 0 && global_batch != step * *accumulation)
    problems.add("--global-batch-size ", global_batch, " and --gradient-accumulation-steps ", *accumulation,
                 " contradict each other; give one of them");
}

}  // namespace megalith
