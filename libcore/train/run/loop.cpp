#include "libcore/train/run/loop.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/generate/generate.h"
#include "libcore/io/run/stop_signal.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/train/log/flops.h"
#include "libcore/train/log/metrics.h"
#include "libcore/train/run/train_run.h"

namespace megalith {
namespace {

// OMP_NUM_THREADS takes precedence, as OpenMP itself would read it.
int threads_of_a_rank(const PretrainConfig& config, int share) {
  if (config.train.threads > 0) return config.train.threads;
  if (const char* chosen = std::getenv("OMP_NUM_THREADS"))
    if (const auto threads = parse_int(chosen); threads && *threads > 0) return static_cast<int>(*threads);
  return std::max(1, share);
}

void use_threads(int threads, int world) {
  log("using ", threads, threads == 1 ? " thread" : " threads", world > 1 ? " a rank" : "");
  set_cpu_threads(threads);
}

}  // namespace

PretrainResult TrainRun::go() {
  observe();
  if (!tuning_) warn_of_missing_evaluations(config_, data_);  // fine-tuning data have no such parts
  if (config_.train.eval_only) {
    final_evaluations();
  } else {
    log("training ...");
    bool ended = false;
    while (!ended && state_.iteration < iterations()) {
      step();
      if (evaluation_interval_.due_at(state_.iteration)) {
        evaluate(concat("iteration ", state_.iteration));
        sample();
      }
      if (saver_) saver_->advance();
      ended = asked_to_end();
    }
    if (!ended) {
      if (state_.iteration > start_) save();
      final_evaluations();
    }
    if (saver_) saver_->finish();
  }
  if (state_.iteration > start_) trainer_->check_memory();
  observers_.end({.iteration = state_.iteration, .reason = end_reason_});
  return {.iteration = state_.iteration,
          .stopped_by = stopped_by_,
          .saved = saved_ == state_.iteration,
          .best = state_.best_iteration};
}

void TrainRun::step() {
  observers_.before_step(state_.iteration);
  const auto start = Clock::now();
  const int64_t samples = config_.train.batch_at(state_.consumed_train);
  if (config_.train.clip_after_warmup)
    trainer_->set_clip(
        static_cast<double>(state_.schedule_samples) < schedule_.warmup ? 0 : config_.train.clip_grad);
  const double rate = schedule_.at(state_.schedule_samples);
  const Trainer::StepResult result =
      trainer_->step(data_.train.read, state_.consumed_train, rate, [this] { return wants_to_stop(); });
  stop_agreed_ = result.stop;
  ++state_.iteration;
  const int64_t first = state_.consumed_train;
  state_.consumed_train += samples;
  if (result.skipped)
    ++state_.skipped;
  else
    state_.schedule_samples += samples;
  const int64_t tokens = tokens_of(first, samples);
  seen_tokens_ += tokens;
  const StepFigures figures{
      .iteration = state_.iteration,
      .consumed_samples = state_.consumed_train,
      .loss = result.loss,
      .learning_rate = observers_.needs().steps_from_zero ? rate : schedule_.at(state_.schedule_samples),
      .grad_norm = result.grad_norm,
      .loss_scale = result.loss_scale,
      .seconds = seconds_since(start),
      .samples = samples,
      .tokens = tokens,
      .seen_tokens = seen_tokens_,
      .flops = model_flops(config_.model, config_.model.padded_vocab(config_.parallel.tensor), samples) *
               static_cast<double>(tokens) / static_cast<double>(samples * config_.model.seq_length),
      .peak_memory = peak_memory(),
      .skipped = result.skipped};
  if (!result.skipped) losses_.add_train(state_.iteration, result.loss);
  observers_.step(
      {.figures = figures, .own_loss = trainer_->own_loss(), .stage_seconds = trainer_->stage_seconds()});
  stop_when_lost(figures);
}

/// Tokens of `samples` training samples from `first` on; samples shorter than the sequence count only their
/// own.
int64_t TrainRun::tokens_of(int64_t first, int64_t samples) const {
  const auto& length = data_.train.read.length;
  if (!length) return samples * config_.model.seq_length;
  int64_t sum = 0;
  for (int64_t i = first; i < first + samples; ++i) sum += length(i);
  return sum;
}

void TrainRun::stop_when_lost(const StepFigures& step) {
  const auto what = skips_.lost(step, trainer_->loss_scale().can_fall());
  if (!what) return;
  if (saver_) saver_->finish();  // an earlier state, from which a run can resume
  observers_.end({.iteration = step.iteration, .reason = "not finite", .lost = true});
  fail(ErrorKind::kData, *what, " and resume from ",
       saved_ >= 0 || start_ > 0 ? concat("the last checkpoint in ", quote(config_.checkpoint.save))
                                 : std::string("an earlier checkpoint"));
}

void TrainRun::evaluate(const std::string& where) {
  if (!evaluations_->has_validation()) return;
  const EvaluationReport report = evaluations_->validation(state_, where);
  losses_.add_valid(state_.iteration, report.loss);
  observers_.evaluation(report);
  note_evaluation(report.loss);
}

// Every rank has the same loss, so all decide alike.
void TrainRun::note_evaluation(double loss) {
  if (!tuning_) return;
  if (!note_loss(state_, *tuning_, loss))
    no_better_ = tuning_->patience > 0 && state_.worse_evaluations >= tuning_->patience;
  else if (tuning_->keep_best)
    save_best();
}

// Waits for the save in progress, which may be the best so far; the next save will not be.
void TrainRun::save_best() {
  if (saver_) saver_->finish();
  best_use_.reset();
  if (saved_ == state_.iteration)
    keep_best(concat(config_.checkpoint.save, "/", iteration_folder(saved_)));
  else
    save();
}

void TrainRun::final_evaluations() {
  evaluate(concat("iteration ", state_.iteration, " on validation set"));
  if (evaluations_->has_test()) observers_.evaluation(evaluations_->test(state_));
  if (!evaluation_interval_.due_at(state_.iteration)) sample();
}

void TrainRun::sample() {
  if (config_.train.sample_prompt.empty() || !leads()) return;
  const std::string text =
      sample_text(trainer_->stage(), trainer_->stream(), *tokenizer_, config_.train.sample_prompt,
                  SampleOptions{.max_new_tokens = config_.train.sample_tokens});
  observers_.sample({state_.iteration, config_.train.sample_prompt, text});
}

/// Does nothing if the save of this iteration was already started.
void TrainRun::save() {
  if (!saver_ || saver_->begun() == state_.iteration) return;
  log("saving checkpoint at iteration ", padded_iteration(state_.iteration), " to ", config_.checkpoint.save);
  Json args = to_json(config_);
  if (tuning_)
    for (const auto& [name, value] : tuning_->args) args.set(name, value);
  saver_->start(state_, {.args = std::move(args),
                         .schedule = schedule_,
                         .tokenizer_files = tokenizer_files(config_.tokenizer),
                         .optimizer = config_.checkpoint.save_optim,
                         .losses = losses_});
}

// Asked within a step, so that the ranks agree together with the loss; only the first rank's clock counts.
bool TrainRun::wants_to_stop() const {
  const auto minutes = config_.train.exit_minutes;
  return stop_.asked() ||
         (leads() && minutes && seconds_since(began_) > 60.0 * static_cast<double>(*minutes));
}

// The signal as named by the first rank that received one; empty: time is up.
std::string TrainRun::agreed_reason() const {
  for (const std::string& name : exchange_values(world_, std::string(stop_.name())))
    if (!name.empty()) return name;
  return {};
}

// Megatron's checkpoint_and_decide_exit: what may end a run between two steps. Saves the state first, so that
// the same command resumes the run.
bool TrainRun::asked_to_end() {
  const TrainConfig& train = config_.train;
  const auto end = [&](std::string reason) {
    save();
    end_reason_ = std::move(reason);
    return true;
  };
  if (stop_agreed_) stopped_by_ = agreed_reason();
  if (!stopped_by_.empty()) return end(stopped_by_);
  if (save_interval_.due_at(state_.iteration)) save();
  if (no_better_) {
    log("exiting program at iteration ", state_.iteration, ": ", state_.worse_evaluations,
        " evaluations were no better than ", *state_.best_loss, " of iteration ", state_.best_iteration);
    return end("early-stopping-patience");
  }
  if (stop_agreed_) {
    log("exiting program after ", format_duration(seconds_since(began_)));
    return end("exit-duration-in-mins");
  }
  if (train.exit_interval && state_.iteration % *train.exit_interval == 0) {
    log("exiting program at iteration ", state_.iteration);
    return end("exit-interval");
  }
  return false;
}

PretrainResult train_rank(const RankInput& input) {
  return TrainRun(input).go();
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ThreadLog& thread_log, const Tuning* tuning) {
  // The ranks of this process share its cores.
  const int threads = threads_of_a_rank(config, usable_cpus() / config.parallel.world);
  use_threads(threads, config.parallel.world);
  const auto run = [&](Communicator& world) {
    set_cpu_threads(threads);
    return train_rank({config, data, tokenizer, stop, world, 0, tuning});
  };
  if (config.parallel.world == 1) return run(*make_self_comm());
  PretrainResult result;
  run_thread_ranks(config.parallel.world, {.timeout = config.parallel.peer_timeout()},
                   [&](Communicator& world) {
                     mute_this_thread(world.rank() > 0);
                     if (thread_log && world.rank() > 0) set_muted_sink(thread_log(world.rank()));
                     const PretrainResult mine = run(world);
                     if (world.rank() == 0) result = mine;
                   });
  return result;
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ProcessRank& rank, const Tuning* tuning) {
  const int threads = threads_of_a_rank(config, rank.cpu_share);
  use_threads(threads, rank.world.size());
  if (config.train.threads == 0 && threads < rank.cpu_share)
    warn("OMP_NUM_THREADS=", threads, " in the environment (torchrun sets it to 1) leaves ",
         rank.cpu_share - threads, " of each rank's ", rank.cpu_share, " cores idle; give --threads ",
         rank.cpu_share);
  return train_rank({config, data, tokenizer, stop, rank.world, rank.ranks_here, tuning});
}

}  // namespace megalith
