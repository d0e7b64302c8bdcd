#include "libcore/config/train_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/config/model_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/thread_limit.h"

namespace megalith {

int64_t BatchRamp::at(int64_t consumed, int64_t whole) const {
  const int64_t steps = (whole - start) / increment;
  if (steps == 0 || consumed > samples) return whole;
  const double samples_of_a_step = static_cast<double>(samples) / static_cast<double>(steps);
  const auto done =
      samples == 0 ? steps : static_cast<int64_t>(static_cast<double>(consumed) / samples_of_a_step);
  return start + std::min(done, steps) * increment;
}

namespace {
/// The ramp with the three numbers in `words`; nothing when they are not three valid numbers.
std::optional<BatchRamp> parse_ramp(const std::vector<std::string>& words) {
  if (words.size() != 3) return std::nullopt;
  const auto start = parse_int(words[0]), increment = parse_int(words[1]), samples = parse_int(words[2]);
  if (!start || !increment || !samples || *start < 1 || *increment < 1 || *samples < 0) return std::nullopt;
  return BatchRamp{*start, *increment, *samples};
}

/// Counts the steps of a ramp, and their samples: those that begin at or after `consumed` samples and not
/// beyond `last`, at most `max_steps`. Steps of one size are counted together, so a ramp of any length takes
/// little time.
CountedSteps steps_in_ramp(const BatchRamp& ramp, int64_t whole, int64_t consumed, int64_t max_steps,
                           int64_t last) {
  const int64_t end = std::min(ramp.samples, last);
  const double level = static_cast<double>(ramp.samples) /
                       static_cast<double>(std::max<int64_t>(1, (whole - ramp.start) / ramp.increment));
  CountedSteps counted;
  while (counted.steps < max_steps && consumed <= end) {
    const int64_t batch = ramp.at(consumed, whole);
    const int64_t increments = (batch - ramp.start) / ramp.increment;
    const double next = (static_cast<double>(increments) + 1) * level;
    const auto guess =
        static_cast<int64_t>((std::min(next, static_cast<double>(end)) - static_cast<double>(consumed)) /
                             static_cast<double>(batch));
    int64_t same = std::clamp<int64_t>(guess, 1, max_steps - counted.steps);
    if (ramp.at(consumed + (same - 1) * batch, whole) != batch) same = 1;
    counted.steps += same;
    counted.samples += same * batch;
    consumed += same * batch;
  }
  return counted;
}

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// The steps of a run of --train-samples, as in Megatron's update_train_iters: first the ramp, then full
/// batches; an incomplete last batch is dropped. (Megatron begins an incomplete last batch of
/// --step-batch-size-schedule, for which the data may have no samples.)
int64_t steps_of_samples(const TrainConfig& t) {
  if (const auto levels = t.batch_levels(); !levels.empty())
    return steps_in_levels(levels, 0, kNoLimit, *t.samples).steps;
  CountedSteps growing;
  const auto ramp = t.ramp();
  if (ramp && ramp->start <= t.global_batch)
    growing = steps_in_ramp(*ramp, t.global_batch, 0, kNoLimit, *t.samples);
  return growing.steps + std::max<int64_t>(0, *t.samples - growing.samples) / t.global_batch;
}
}  // namespace

std::vector<BatchLevel> TrainConfig::batch_levels() const {
  BatchSchedule schedule = parse_batch_schedule(batch_schedule, tokens_of_a_sample);
  return schedule.wrong.empty() ? std::move(schedule.levels) : std::vector<BatchLevel>();
}

std::optional<BatchRamp> TrainConfig::ramp() const {
  return parse_ramp(rampup);
}

int64_t TrainConfig::batch_at(int64_t consumed) const {
  if (const auto levels = batch_levels(); !levels.empty()) return megalith::batch_at(levels, consumed);
  const auto growing = ramp();
  return growing ? growing->at(consumed, global_batch) : global_batch;
}

int64_t TrainConfig::samples_of_steps(int64_t steps, int64_t consumed) const {
  if (const auto levels = batch_levels(); !levels.empty())
    return steps_in_levels(levels, consumed, steps, kNoLimit).samples;
  CountedSteps growing;
  if (const auto ramp_of_run = ramp())
    growing = steps_in_ramp(*ramp_of_run, global_batch, consumed, steps, kNoLimit);
  return growing.samples + (steps - growing.steps) * global_batch;
}

void TrainConfig::finish() {
  if (eval_only) {
    epochs.reset();  // a run that only evaluates has no training steps
    if (micro_batch == 0) micro_batch = 1;
    if (!iters && !samples) iters = 0;
  }
  // A schedule counts tokens: its steps are known once the tokens of a sample are.
  const bool countable = batch_schedule.empty() || tokens_of_a_sample > 0;
  if (!iters && samples && global_batch > 0 && countable) iters = steps_of_samples(*this);
  if (!decay_iters && !samples && iters && *iters > 0) decay_iters = iters;
  if (!decay_samples && samples) decay_samples = samples;
  if (recompute_activations && recompute == Recompute::kNone) recompute = Recompute::kSelective;
  if (recompute_all) {
    recompute = Recompute::kFull;
    if (!recompute_method) recompute_method = "uniform";
    if (!recompute_layers) recompute_layers = 1;
  }
}

void TrainConfig::finish(const ParallelConfig& parallel) {
  if (global_batch == 0) {
    const BatchSchedule levels = parse_batch_schedule(batch_schedule, tokens_of_a_sample);
    if (levels.wrong.empty()) global_batch = static_cast<int>(levels.largest());
  }
  if (global_batch == 0)
    global_batch = static_cast<int>(std::min<int64_t>(
        int64_t{micro_batch} * parallel.data * accumulation.value_or(1), std::numeric_limits<int>::max()));
  finish();
}

namespace {
/// The samples of that many steps of a batch; the greatest number if there are more.
int64_t samples_of(int64_t steps, int64_t batch) {
  int64_t product = 0;
  return __builtin_mul_overflow(steps, batch, &product) ? kNoLimit : product;
}
}  // namespace

int64_t TrainConfig::decay_in_samples() const {
  return decay_samples ? *decay_samples : samples_of(decay_iters.value_or(iters.value_or(0)), global_batch);
}

int64_t TrainConfig::wsd_in_samples() const {
  if (decay != LrDecay::kWsd) return 0;
  return wsd_samples ? *wsd_samples : samples_of(wsd_iters.value_or(0), global_batch);
}

bool TrainConfig::decays_with_the_run() const {
  return samples ? decay_samples == samples : decay_iters == iters;
}

double TrainConfig::warmup_in_samples() const {
  if (warmup_fraction) return *warmup_fraction * static_cast<double>(decay_in_samples());
  return static_cast<double>(warmup_samples) + static_cast<double>(warmup_iters) * global_batch;
}

// `epochs` may be a fraction without an exact binary form. If it means a whole number of steps, the rounding
// error must not add a step.
int64_t steps_of_epochs(double epochs, int64_t steps_of_an_epoch) {
  constexpr double kRounding = 1e-9;
  const double steps = epochs * static_cast<double>(steps_of_an_epoch);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps * (1 - kRounding))));
}

void TrainConfig::set_epoch_steps(int64_t steps_of_an_epoch) {
  if (steps_of_an_epoch < 1)
    fail(ErrorKind::kUsage, "the training data has fewer samples than --global-batch-size ", global_batch,
         "; give more text, or a smaller batch, --seq-length or --stride");
  const int64_t all = steps_of_epochs(*epochs, steps_of_an_epoch);
  epochs.reset();
  iters = all;
  finish();
  Problems problems;
  validate(problems);
  problems.throw_if_any();
}

namespace {
/// As in Megatron, a run and its whole schedule are counted either in steps or in samples.
void validate_length(const TrainConfig& t, Problems& problems) {
  if (!t.iters && !t.samples && !t.epochs)
    problems.missing({"train-iters"}, " (or ", Opt{"train-samples"}, ", or ", Opt{"num-epochs"}, ")");
  if (t.epochs && (t.iters || t.samples))
    problems.add(Opt{"num-epochs"}, ' ', *t.epochs, " and ",
                 // With --train-samples, iters is derived, so the message names --train-samples.
                 Opt{t.samples ? "train-samples" : "train-iters"}, ' ', t.samples ? *t.samples : *t.iters,
                 " contradict each other; give one of them");
  if (t.iters && t.samples && t.global_batch > 0 && *t.iters != steps_of_samples(t))
    problems.add(Opt{"train-iters"}, ' ', *t.iters, " and ", Opt{"train-samples"}, ' ', *t.samples,
                 " contradict each other; give one of them");
  const Opt length{t.samples ? "train-samples" : "train-iters"};
  const auto refuse = [&](bool given, const Opt& option, const Opt& other) {
    if (given)
      problems.add(option, " cannot be combined with ", length, "; give ", other,
                   ": a run is counted in steps or in samples");
  };
  refuse(t.samples && t.decay_iters, {"lr-decay-iters"}, {"lr-decay-samples"});
  refuse(t.samples && t.warmup_iters > 0, {"lr-warmup-iters"}, {"lr-warmup-samples"});
  refuse(!t.samples && t.decay_samples, {"lr-decay-samples"}, {"lr-decay-iters"});
  refuse(!t.samples && t.warmup_samples > 0, {"lr-warmup-samples"}, {"lr-warmup-iters"});
  refuse(t.samples && t.wsd_iters, {"lr-wsd-decay-iters"}, {"lr-wsd-decay-samples"});
  refuse(!t.samples && t.wsd_samples, {"lr-wsd-decay-samples"}, {"lr-wsd-decay-iters"});
}

/// Megatron lets a longer annealing phase begin below the peak, right after the warm-up; here such lengths
/// are taken for a mistake.
void validate_wsd(const TrainConfig& t, Problems& problems) {
  const Opt length{t.samples ? "lr-wsd-decay-samples" : "lr-wsd-decay-iters"};
  const std::optional<int64_t> given = t.samples ? t.wsd_samples : t.wsd_iters;
  const bool styled = t.wsd_decay != WsdDecay::kExponential;
  if (t.decay != LrDecay::kWsd) {
    if (given || styled)
      problems.add(given ? length : Opt{"lr-wsd-decay-style"}, " needs ", Opt{"lr-decay-style"}, " WSD");
    return;
  }
  if (t.eval_only) return;  // no step takes a rate
  if (!given) {
    problems.missing(length, " (the annealing phase of ", Opt{"lr-decay-style"}, " WSD)");
    return;
  }
  if (!t.iters && !t.decay_samples && !t.decay_iters) return;  // the data will tell how long the decay is
  const auto whole = static_cast<double>(t.decay_in_samples());
  if (static_cast<double>(t.wsd_in_samples()) + t.warmup_in_samples() > whole)
    problems.add(length, ' ', *given, " and the warm-up are longer than the whole schedule, ",
                 t.samples ? Phrase(whole, " samples") : Phrase(whole / t.global_batch, " steps"),
                 "; shorten one of them");
}

void validate_schedule(const TrainConfig& t, Problems& problems) {
  if (t.eval_only) return;
  const bool given = t.lr != 0;
  if (!given) problems.missing({"lr"});
  if (given && t.min_lr > t.lr)
    problems.add(Opt{"min-lr"}, ' ', t.min_lr, " is greater than ", Opt{"lr"}, ' ', t.lr);
  if (given && t.warmup_init > t.lr)
    problems.add(Opt{"lr-warmup-init"}, ' ', t.warmup_init, " is greater than ", Opt{"lr"}, ' ', t.lr);
  const bool twice = t.warmup_fraction && (t.warmup_iters > 0 || t.warmup_samples > 0);
  if (twice)
    problems.add(Opt{t.warmup_iters > 0 ? "lr-warmup-iters" : "lr-warmup-samples"}, ' ',
                 t.warmup_iters > 0 ? t.warmup_iters : t.warmup_samples, " and ", Opt{"lr-warmup-fraction"},
                 ' ', *t.warmup_fraction, " contradict each other; give one of them");
  else if (!t.decays_with_the_run() && t.decay_samples &&
           t.warmup_in_samples() >= static_cast<double>(*t.decay_samples))
    problems.add("the warm-up takes ", t.warmup_in_samples(), " samples, but ", Opt{"lr-decay-samples"},
                 " is ", *t.decay_samples, "; shorten ", Opt{"lr-warmup-samples"});
  else if (!t.decays_with_the_run() && t.decay_iters && t.global_batch > 0 &&
           t.warmup_in_samples() >= static_cast<double>(*t.decay_iters) * t.global_batch)
    problems.add("the warm-up takes ", t.warmup_in_samples() / t.global_batch, " steps, but ",
                 Opt{"lr-decay-iters"}, " is ", *t.decay_iters, "; shorten ", Opt{"lr-warmup-iters"});
}

/// Megatron accepts a fixed loss scale with --bf16 too, and reads the options of a dynamic one only with
/// --fp16.
void validate_loss_scale(const TrainConfig& t, Problems& problems) {
  if (t.fp16 && t.bf16)
    problems.add(Opt{"fp16"}, " and ", Opt{"bf16"}, " contradict each other; give one of them");
  if (t.fixed_loss_scale() && !t.fp16 && !t.bf16)
    problems.add(Opt{"loss-scale"}, ' ', *t.loss_scale, " needs ", Opt{"fp16"}, " or ", Opt{"bf16"},
                 ": fp32 is trained without one");
  const TrainConfig plain;
  const auto check = [&](const Opt& option, auto value, auto otherwise) {
    if (value == otherwise) return;
    if (!t.fp16)
      problems.add(option, ' ', value, " needs ", Opt{"fp16"},
                   ": other precisions have no dynamic loss scale; leave it out");
    else if (t.fixed_loss_scale())
      problems.add(option, ' ', value, " is for a dynamic loss scale, ", Opt{"loss-scale"}, ' ',
                   *t.loss_scale, " sets a fixed one; give one of them");
  };
  check({"initial-loss-scale"}, t.initial_loss_scale, plain.initial_loss_scale);
  check({"min-loss-scale"}, t.min_loss_scale, plain.min_loss_scale);
  check({"loss-scale-window"}, t.loss_scale_window, plain.loss_scale_window);
  check({"hysteresis"}, t.hysteresis, plain.hysteresis);
  if (t.fp16 && t.min_loss_scale > t.initial_loss_scale)
    problems.add(Opt{"min-loss-scale"}, ' ', t.min_loss_scale, " is greater than ", Opt{"initial-loss-scale"},
                 ' ', t.initial_loss_scale);
}

void validate_recompute(const TrainConfig& t, Problems& problems) {
  if (t.recompute == Recompute::kFull && !t.recompute_method)
    problems.add(Opt{"recompute-granularity"}, " full needs ", Opt{"recompute-method"}, " uniform or block");
  if (t.recompute != Recompute::kFull && (t.recompute_method || t.recompute_layers))
    problems.add(Opt{"recompute-method"}, " and ", Opt{"recompute-num-layers"}, " need ",
                 Opt{"recompute-granularity"}, " full");
}
}  // namespace

void TrainConfig::validate(Problems& problems) const {
  if (micro_batch == 0) problems.missing({"micro-batch-size"});
  require_possible_threads(threads, "threads", problems);
  validate_length(*this, problems);
  validate_wsd(*this, problems);
  validate_schedule(*this, problems);
  validate_loss_scale(*this, problems);
  validate_recompute(*this, problems);
  if (!trace.empty() && trace_end <= trace_begin)
    problems.add(Opt{"profile-step-end"}, ' ', trace_end, " is not after ", Opt{"profile-step-start"}, ' ',
                 trace_begin, ", so that ", Opt{"trace"}, ' ', trace, " would hold no step");
  if (!exit_at_signal)
    problems.add(Opt{"no-exit-signal-handler"},
                 ": at a signal a run always finishes its step, saves and ends; leave it out");
}

namespace {
/// Each batch of the ramp must be a multiple of `step`, like the full batch.
void validate_ramp(const TrainConfig& t, int64_t step, Problems& problems) {
  if (t.rampup.empty()) return;
  const auto ramp = t.ramp();
  if (!ramp) {
    problems.refuse({"rampup-batch-size"}, join(t.rampup, " "),
                    "three numbers: the first batch, the increment, the samples of the growth");
    return;
  }
  if (ramp->start > t.global_batch || (t.global_batch - ramp->start) % ramp->increment != 0)
    problems.add(Opt{"rampup-batch-size"}, ' ', join(t.rampup, " "), ": ", t.global_batch, " (",
                 Opt{"global-batch-size"}, ") is not reached from ", ramp->start, " in steps of ",
                 ramp->increment);
  for (const int64_t batch : {ramp->start, ramp->increment})
    if (step > 0 && batch % step != 0) {
      problems.add(Opt{"rampup-batch-size"}, ' ', join(t.rampup, " "), ": ", batch, " is not a multiple of ",
                   Opt{"micro-batch-size"}, ' ', t.micro_batch, " * data-parallel size ",
                   step / t.micro_batch, nearest_multiples(batch, step));
      return;
    }
}

/// Megatron lets steps be counted with a schedule, too, but then asks for too few samples of the data.
void validate_batch_schedule(const TrainConfig& t, Problems& problems) {
  if (t.batch_schedule.empty()) return;
  const Opt option{"step-batch-size-schedule"};
  const BatchSchedule schedule = parse_batch_schedule(t.batch_schedule, t.tokens_of_a_sample);
  if (!schedule.wrong.empty() || schedule.levels.empty()) {
    problems.add(option, ' ', quote(t.batch_schedule), ' ',
                 schedule.wrong.empty() ? "holds no THRESHOLD:BATCH" : schedule.wrong);
    return;
  }
  if (t.accumulation || t.global_batch != schedule.largest())
    problems.add(option, " and ", Opt{t.accumulation ? "gradient-accumulation-steps" : "global-batch-size"},
                 ' ', t.accumulation ? *t.accumulation : t.global_batch,
                 " contradict each other; give one of them");
  if (!t.rampup.empty())
    problems.add(option, " and ", Opt{"rampup-batch-size"}, " contradict each other; give one of them");
  if (!t.samples && !t.eval_only)
    problems.add(option, " needs ", Opt{"train-samples"}, " N in place of ",
                 Opt{t.epochs ? "num-epochs" : "train-iters"}, ": its steps have different sizes");
}

void validate_validation_sets(const TrainConfig& t, Problems& problems) {
  if (t.multiple_validation && !t.full_validation)
    problems.add(Opt{"multiple-validation-sets"}, " needs ", Opt{"full-validation"});
  if (!t.validation_names.empty() && !t.multiple_validation)
    problems.add(Opt{"validation-set-names"}, ' ', join(t.validation_names, " "), " needs ",
                 Opt{"multiple-validation-sets"});
  for (auto name = t.validation_names.begin(); name != t.validation_names.end(); ++name)
    if (std::find(t.validation_names.begin(), name, *name) != name)
      problems.add(Opt{"validation-set-names"}, ": two sets have the name ", quote(*name),
                   "; their figures could not be told apart");
}
}  // namespace

void TrainConfig::validate(const ParallelConfig& parallel, Problems& problems) const {
  const int64_t step = int64_t{micro_batch} * parallel.data;
  validate_ramp(*this, step, problems);
  validate_batch_schedule(*this, problems);
  validate_validation_sets(*this, problems);
  if (epoch_ends && !(rampup.empty() && batch_schedule.empty()))
    problems.add(Opt{"at-epoch-ends"}, ": epochs end within batches that grow (",
                 Opt{rampup.empty() ? "step-batch-size-schedule" : "rampup-batch-size"},
                 "); leave out one of them");
  if (!batch_schedule.empty()) return;  // which levels a run takes depends on where it begins
  if (step > 0 && global_batch % step != 0)
    problems.add(Opt{"global-batch-size"}, ' ', global_batch, " is not a multiple of ",
                 Opt{"micro-batch-size"}, ' ', micro_batch, " * data-parallel size ", parallel.data,
                 nearest_multiples(global_batch, step));
  else if (accumulation && step > 0 && global_batch != step * *accumulation)
    problems.add(Opt{"global-batch-size"}, ' ', global_batch, " and ", Opt{"gradient-accumulation-steps"},
                 ' ', *accumulation, " contradict each other; give one of them");
}

template std::vector<Field> fields_of<TrainConfig>(TrainConfig&);

}  // namespace megalith
