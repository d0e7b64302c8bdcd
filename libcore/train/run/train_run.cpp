#include "libcore/train/run/train_run.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/generate/sample_text.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"
#include "libcore/train/log/device_memory.h"
#include "libcore/train/log/run_logs.h"
#include "libcore/train/products/attention_choice.h"
#include "libcore/train/products/product_choices.h"
#include "libcore/train/ranks/nccl_connections.h"
#include "libcore/train/ranks/rank_device.h"
#include "libcore/train/run/run_start.h"
#include "libcore/train/run/step_tracer.h"

namespace megalith {
namespace {

/// Only a warning: the schedulers of Megatron-LM and of the other tools let the rate rise until such a run
/// ends.
void warn_of_long_warmup(const TrainConfig& train) {
  const auto run = static_cast<double>(train.samples_of_steps(*train.iters, 0));
  if (run == 0 || train.warmup_in_samples() < run) return;
  const double batch = train.global_batch;
  warn("the warm-up of ", train.warmup_in_samples() / batch, " steps outlasts the run's ", run / batch,
       ": the learning rate does not reach ", train.lr);
}

/// As Megatron logs the schedule.
void log_batch_levels(const TrainConfig& train, int64_t step) {
  const std::vector<BatchLevel> levels = train.batch_levels();
  if (levels.empty()) return;
  log("step batch size schedule (", levels.size(), " steps):");
  for (const auto& [from, batch] : levels)
    log("  >= ", format_count(from * train.tokens_of_a_sample), " tokens (", format_count(from),
        " samples) -> batch_size=", batch, ", num_microbatches=", batch / step);
}

/// The option that says how long the run is.
const char* option_of_length(const TrainConfig& train) {
  return train.epochs ? "--num-epochs" : train.samples ? "--train-samples" : "--train-iters";
}

}  // namespace

TrainRun::TrainRun(const RankInput& in)
    : in_(in),
      config_(in.config),
      end_(in),
      device_(open_rank_device(in.world, in.place, in.config)),
      progress_(config_, in.data.train.read),
      skips_(config_.train),
      saves_(in, config_) {
  const std::optional<cuda::DeviceMemory> before =
      device_.sharers > 1 ? std::nullopt : device_memory(*device_.backend);
  const std::optional<StartPoint> start = find_run_start(in_, config_);
  tasks_.emplace(config_, in_.world);
  tasks_->encode(config_, device_.backend->name());
  // Before take_folder(), so that a run that one of these refuses leaves no folder.
  due_ = step_intervals(config_.train, config_.checkpoint, epoch_steps());
  const RunShape shape = agreed_shape(in_, config_, device_, *tasks_);
  saves_.take_folder(start ? &*start : nullptr);
  choose_products(shape, start ? &*start : nullptr);
  auto outputs = in_.world.rank() == 0 ? std::make_unique<RunOutputs>(config_.train) : nullptr;
  trainer_ = std::make_unique<Trainer>(shape, *device_.backend, device_.world ? *device_.world : in_.world);
  const Drain drain(trainer_->stream());  // when it fails, ends what the devices of its ranks wait for
  observers_.add(device_memory_log(*device_.backend, before, trainer_->memory().on_device()));
  const auto together = [this](auto&& work) {
    do_together(in_.world, config_.parallel.peer_timeout(), [&](const auto&) { work(); });
  };
  together([&] { take_base_values(in_, *trainer_, start.has_value()); });
  if (in_.tuning && in_.tuning->preferences) {
    const bool resumed = start && resumes(config_.checkpoint, *start);
    learn_preferences(in_, config_, resumed ? *start->state : TrainState{}, *trainer_);
  }
  together([&] {
    if (start)
      load(*start);
    else if (in_.tuning)
      take_adapters(*in_.tuning, *trainer_);
  });
  require_whole_batches(config_, in_.data, progress_.state());
  require_enough_data(in_, progress_.state());
  observe(std::move(outputs));
  saves_.begin(*trainer_, observers_);
}

/// Before the trainer takes memory, since it takes some itself.
void TrainRun::choose_products(const RunShape& shape, const StartPoint* start) {
  const bool resumed = start && resumes(config_.checkpoint, *start);
  StepKinds kinds(shape);
  const ProductRun run{.world = in_.world,
                       .peer_timeout = config_.parallel.peer_timeout(),
                       .kinds = kinds,
                       .saved = resumed ? &start->args : nullptr,
                       .path = resumed ? start->path : std::string(),
                       .place = resumed ? start->args_place : std::string()};
  Json products = megalith::choose_products(run, *device_.backend);
  const Json attention = choose_attention(run, *device_.backend);
  if (!attention.is_null()) products.set(kAttentionChoice, attention);
  saves_.keep_products(std::move(products));
}

void TrainRun::load(const StartPoint& start) {
  const CheckpointConfig& checkpoint = config_.checkpoint;
  const bool resumed = resumes(checkpoint, start);
  log(" loading checkpoint from ", printable(start.path));
  saves_.protect_base(start.path);
  take_start_values(start, *trainer_, resumed);
  if (resumed) {
    progress_.resume(start);
    if (checkpoint.load_optim && !config_.train.eval_only)
      progress_.take_schedule(take_optimizer_state(start, checkpoint, progress_.schedule(), *trainer_));
    if (progress_.state().best_iteration > 0) saves_.protect_best(progress_.state().best_iteration);
    saves_.remove_old(progress_.iteration());
  } else if (!start.state) {
    if (saves_.wanted() && !start.no_fresh_start.empty()) fail(ErrorKind::kNoInput, start.no_fresh_start);
    log(start.path, " holds only weights: training begins at iteration 0");
  }
  log("  successfully loaded checkpoint from ", printable(start.path), " at iteration ",
      progress_.iteration());
}

void TrainRun::observe(std::unique_ptr<RunOutputs> outputs) {
  const ObservedRun run{.config = config_,
                        .world = in_.world,
                        .at = trainer_->groups().at,
                        .ranks_here = in_.ranks_on_machine(),
                        .start = progress_.start(),
                        .epoch_steps = epoch_steps(),
                        .parameters = trainer_->memory().parameters,
                        .memory = trainer_->memory().total()};
  if (!config_.train.trace.empty()) observers_.add(std::make_unique<StepTracer>(run, *trainer_));
  add_run_logs(observers_, run, std::move(outputs));
  if (device_.world && in_.world.rank() == 0) observers_.add(nccl_connections_log());
  const ObserverNeeds needs = observers_.needs();
  trainer_->keep_own_loss(needs.own_loss);
  if (on_gpu(trainer_->shape()) && !config_.train.eval_only) choose_order();
  evaluations_.emplace(config_.train, in_.data, *trainer_,
                       EvaluationOptions{.train_loss = needs.train_loss,
                                         .accuracy = in_.tuning && in_.tuning->by_accuracy,
                                         .stop = [this] { return end_.wanted(); }});
}

/// Whether steps begin before the results of those before them are read: in all ranks alike, since they meet
/// between steps.
void TrainRun::choose_order() {
  const std::vector<bool> can = exchange_values(in_.world, trainer_->can_run_ahead());
  runs_ahead_ = std::all_of(can.begin(), can.end(), [](bool rank) { return rank; });
  log(" > CUDA graphs: ", trainer_->repeated_passes(), "; the result of a step is read ",
      runs_ahead_ ? "after the next one has begun" : "before the next one begins");
}

PretrainResult TrainRun::go() {
  // As in the constructor.
  const Drain drain(trainer_->stream());
  if (!in_.tuning) warn_of_missing_evaluations(config_, in_.data);  // fine-tuning has no splits to warn of
  if (!config_.train.eval_only) {
    warn_of_long_warmup(config_.train);
    log_batch_levels(config_.train, int64_t{config_.train.micro_batch} * config_.parallel.data);
    run_steps();
  }
  if (!end_.ended_early()) final_evaluations();
  saves_.finish();
  // For the gather of the last step, which nothing may have read. Later, CUDA's own wait for it, before it
  // frees memory, would have no limit and name no rank.
  trainer_->params();
  trainer_->stream().synchronize();
  if (progress_.moved()) trainer_->check_memory();
  observers_.end({.iteration = progress_.iteration(), .reason = end_.reason()});
  return {.iteration = progress_.iteration(),
          .stopped_by = end_.signal(),
          .saved = saves_.saved() == progress_.iteration(),
          .best = progress_.state().best_iteration};
}

// Whatever ends the run, the state is saved, so that the same command resumes it.
void TrainRun::run_steps() {
  if (progress_.iteration() < *config_.train.iters)
    log("training ...");
  else
    log(progress_.iteration(), " of ", *config_.train.iters, " steps are done; to train longer, raise ",
        option_of_length(config_.train));
  if (ends_in_left_evaluation()) return;
  while (begun() < *config_.train.iters) {
    saves_.make_way();
    begin_step();
    if (finish_steps(reads_late() ? 1 : 0)) break;
  }
  if (progress_.moved()) saves_.save(progress_);
}

void TrainRun::begin_step() {
  observers_.before_step(begun());
  const auto began = std::chrono::steady_clock::now();
  const RunProgress::Next next = progress_.next(begun_.empty() ? nullptr : &begun_.back().next);
  if (config_.train.clip_after_warmup) trainer_->set_clip(next.warming_up ? 0 : config_.train.clip_grad);
  try {
    trainer_->begin_step(in_.data.train.read, next.first,
                         {.value = next.rate, .if_skipped = next.rate_if_skipped},
                         [this] { return end_.wanted(); });
  } catch (const Error& error) {
    finish_before(error);
    throw;
  }
  begun_.push_back({.next = next, .began = began, .stage_seconds = trainer_->stage_seconds()});
}

/// The steps before one that cannot begin are logged before its error is: samples that cannot be read leave
/// them as they are. With a device or a rank that has failed they may not end.
void TrainRun::finish_before(const Error& error) {
  if (error.kind() == ErrorKind::kDevice || error.kind() == ErrorKind::kComm) return;
  while (!begun_.empty()) finish_step();
}

/// Whether the next step may begin before the result of the one that has just begun is read. It may not where
/// the run does something else after this step, or where the next step's clipping depends on its result. A
/// signal is known to other ranks by this result only; one rank alone ends at once.
bool TrainRun::reads_late() const {
  const int64_t step = begun();
  const auto exit_interval = config_.train.exit_interval;
  const bool ends = step == *config_.train.iters || (exit_interval && step % *exit_interval == 0) ||
                    (in_.world.size() == 1 && end_.wanted());
  return runs_ahead_ && !ends && !due_.evaluation.due_at(step) && !due_.save.due_at(step) &&
         !config_.train.clip_after_warmup;
}

/// Finishes steps until at most `late` have begun and are not finished; all, once the ranks have agreed to
/// end the run. Returns whether the run ends.
bool TrainRun::finish_steps(size_t late) {
  while (begun_.size() > late) {
    finish_step();
    if (end_.agreed()) late = 0;
  }
  return begun_.empty() && end_.due(progress_.state());
}

void TrainRun::finish_step() {
  const Trainer::StepResult result = trainer_->finish_step();
  const BegunStep step = begun_.front();
  begun_.pop_front();
  end_.agree(result.stop);
  StepReport report{.figures = progress_.advance(step.next, result),
                    .own_loss = trainer_->own_loss(),
                    .stage_seconds = step.stage_seconds};
  report.figures.seconds = seconds_since(std::max(step.began, finished_));
  finished_ = std::chrono::steady_clock::now();
  observers_.step(report);
  stop_when_lost(report.figures);
  if (due_.evaluation.due_at(progress_.iteration())) evaluate_and_sample(EvaluationPart::kAll);
  saves_.advance();
  if (due_.save.due_at(progress_.iteration())) saves_.save(progress_);
  observers_.step_done(progress_.iteration());
}

void TrainRun::stop_when_lost(const StepFigures& step) {
  const auto what = skips_.lost(step, trainer_->loss_scale().can_fall());
  if (!what) return;
  saves_.finish();  // the save in progress is of an earlier state, from which a run can resume
  observers_.end({.iteration = step.iteration, .reason = "not finite", .lost = true});
  fail(ErrorKind::kData, *what, " and resume from ",
       saves_.saved() >= 0 || progress_.start() > 0
           ? concat("the last checkpoint in ", quote(config_.checkpoint.save))
           : std::string("an earlier checkpoint"));
}

/// Does what a signal has left of the evaluation after the last step. Returns whether the run ends then; if
/// the evaluation is done, a checkpoint says so, lest each run of the command does it again.
bool TrainRun::ends_in_left_evaluation() {
  const auto left = progress_.state().evaluation_left;
  if (!left) return false;
  evaluate_and_sample(*left);
  if (!end_.due(progress_.state())) return false;
  if (!progress_.state().evaluation_left) saves_.save(progress_);
  return true;
}

void TrainRun::evaluate_and_sample(EvaluationPart first) {
  evaluate(concat("iteration ", progress_.iteration()), first);
  if (!progress_.state().evaluation_left) sample();
}

// A part that is cut short is done again, with the parts after it, by the run that resumes: it then has the
// figures and the state of a run that nobody ended.
void TrainRun::evaluate(const std::string& where, EvaluationPart first) {
  std::optional<EvaluationPart> left;
  if (first == EvaluationPart::kAll && !validate(where))
    left = EvaluationPart::kAll;
  else if (!evaluate_tasks())
    left = EvaluationPart::kTasks;
  progress_.set_evaluation_left(left);
  if (left) end_.agree(true);
}

/// Returns false if the run is to end and the tasks were not evaluated.
bool TrainRun::evaluate_tasks() {
  if (!tasks_->due(progress_.iteration())) return true;
  const std::optional<TasksReport> report =
      tasks_->evaluate(progress_.iteration(), *trainer_, [this] { return end_.wanted(); });
  if (!report) return false;
  if (!report->figures.empty()) observers_.tasks(*report);
  return true;
}

/// Returns false if the run is to end and the validation set was not read to the end.
bool TrainRun::validate(const std::string& where) {
  if (!evaluations_->has_validation()) return true;
  const auto reports = evaluations_->validation(progress_.state(), where);
  if (!reports) {
    log("evaluation at ", where, ": stopped before its end, no figures");
    return false;
  }
  double sum = 0;
  for (const EvaluationReport& report : *reports) sum += report.loss;
  const double loss = sum / static_cast<double>(reports->size());
  progress_.add_validation(loss);
  for (const EvaluationReport& report : *reports) observers_.evaluation(report);
  if (!in_.tuning) return true;
  // Every rank has the same loss, so all decide alike.
  const double figure = in_.tuning->by_accuracy ? 1 - *reports->front().accuracy : loss;
  if (progress_.note_figure(figure, in_.tuning->threshold))
    saves_.save_best(progress_);
  else
    end_.note_worse(progress_.state());
  return true;
}

void TrainRun::final_evaluations() {
  evaluate(concat("iteration ", progress_.iteration(), " on validation set"), EvaluationPart::kAll);
  if (!end_.agreed() && evaluations_->has_test()) {
    const auto report = evaluations_->test(progress_.state());
    if (report) observers_.evaluation(*report);
    end_.agree(!report);
  }
  if (end_.agreed() && end_.due(progress_.state())) return;
  if (!due_.evaluation.due_at(progress_.iteration())) sample();
}

void TrainRun::sample() {
  const std::string& prompt = config_.train.sample_prompt;
  if (prompt.empty() || in_.world.rank() > 0) return;
  const std::string text = sample_text(trainer_->stage(), trainer_->stream(), *in_.tokenizer, prompt,
                                       SampleOptions{.max_new_tokens = config_.train.sample_tokens});
  observers_.sample({progress_.iteration(), prompt, text});
}

}  // namespace megalith
