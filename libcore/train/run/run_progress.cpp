#include "libcore/train/run/run_progress.h"

#include "libcore/base/process.h"
#include "libcore/train/log/flops.h"

namespace megalith {

RunProgress::RunProgress(const PretrainConfig& config, const SampleSource& samples)
    : config_(config), samples_(samples), schedule_(make_lr_schedule(config.train)) {}

void RunProgress::resume(const StartPoint& start) {
  state_ = *start.state;
  losses_ = start.losses;
  start_ = state_.iteration;
  seen_tokens_ = tokens_of(0, state_.consumed_train);
}

RunProgress::Next RunProgress::next(const Next* before) const {
  const int64_t begun = before ? before->samples : 0, first = state_.consumed_train + begun,
                scheduled = state_.schedule_samples + begun;
  return {.first = first,
          .samples = config_.train.batch_at(first),
          .rate = schedule_.at(scheduled),
          .rate_if_skipped = schedule_.at(state_.schedule_samples),
          // As in LrSchedule::at() and in the DDP tutorial, which clips where global_step > warmup_steps.
          .warming_up = static_cast<double>(scheduled) <= schedule_.warmup};
}

StepFigures RunProgress::advance(const Next& step, const Trainer::StepResult& result) {
  // Not step.rate: whether the step before was skipped may not have been known when this one began.
  const double rate = schedule_.at(state_.schedule_samples);
  ++state_.iteration;
  state_.consumed_train += step.samples;
  if (result.skipped) {
    ++state_.skipped;
  } else {
    state_.schedule_samples += step.samples;
    losses_.add_train(state_.iteration, result.loss);
  }
  const int64_t tokens = tokens_of(step.first, step.samples);
  seen_tokens_ += tokens;
  const ModelConfig& model = config_.model;
  return {.iteration = state_.iteration,
          .consumed_samples = state_.consumed_train,
          .loss = result.loss,
          .rate = rate,
          .next_rate = schedule_.at(state_.schedule_samples),
          .grad_norm = result.grad_norm,
          .loss_scale = result.loss_scale,
          .samples = step.samples,
          .tokens = tokens,
          .seen_tokens = seen_tokens_,
          .flops = model_flops(model, model.padded_vocab(config_.parallel.tensor), step.samples) *
                   static_cast<double>(tokens) / static_cast<double>(step.samples * model.seq_length),
          .peak_memory = peak_memory(),
          .skipped = result.skipped};
}

void RunProgress::add_validation(double loss) {
  if (!config_.train.full_validation)
    state_.consumed_valid += config_.train.eval_iters * config_.train.global_batch;
  losses_.add_valid(state_.iteration, loss);
}

bool RunProgress::note_figure(double figure, double threshold) {
  const bool better = !state_.best_loss || figure < *state_.best_loss - threshold;
  if (better) {
    state_.best_loss = figure;
    state_.best_iteration = state_.iteration;
    state_.worse_evaluations = 0;
  } else {
    ++state_.worse_evaluations;
  }
  return better;
}

// The number of tokens in these samples. A sample shorter than the sequence counts only its own tokens.
int64_t RunProgress::tokens_of(int64_t first, int64_t samples) const {
  if (!samples_.length) return samples * config_.model.seq_length;
  int64_t sum = 0;
  for (int64_t i = first; i < first + samples; ++i) sum += samples_.length(i);
  return sum;
}

}  // namespace megalith
