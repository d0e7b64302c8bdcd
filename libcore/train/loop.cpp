#include "libcore/train/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/generate/generate.h"
#include "libcore/io/file.h"
#include "libcore/io/lock_file.h"
#include "libcore/io/stop_signal.h"
#include "libcore/ops/backend.h"
#include "libcore/ops/cuda_plugin.h"
#include "libcore/parallel/thread_comm.h"
#include "libcore/parallel/together.h"
#include "libcore/train/checkpointing.h"
#include "libcore/train/metrics.h"
#include "libcore/train/report.h"
#include "libcore/train/run_rules.h"
#include "libcore/train/saver.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

// A single bad step may come from bad data; after so many in a row the model itself is lost.
constexpr int64_t kMostSkipsInARow = 3;

std::string padded_iteration(int64_t iteration) {
  const std::string digits = std::to_string(iteration);
  return std::string(7 - std::min<size_t>(7, digits.size()), ' ') + digits;
}

/// The checkpoint that --load names, if there is one yet: the one that the first rank sees, for another run
/// may just be writing there.
std::unique_ptr<CheckpointReader> open_checkpoint(const CheckpointConfig& config, Communicator& world) {
  if (config.load.empty()) return nullptr;
  std::string name;
  if (world.rank() == 0)
    if (const auto folder = latest_checkpoint(config.load)) name = std::filesystem::path(*folder).filename();
  name = world.exchange(name).front();
  if (!name.empty()) return std::make_unique<CheckpointReader>(concat(config.load, "/", name));
  if (config.exit_on_missing)
    fail(ErrorKind::kNoInput, config.load,
         ": holds no checkpoint, and --exit-on-missing-checkpoint is given");
  log("no checkpoint in ", config.load, ": starting from random values");
  return nullptr;
}

/// The schedule to go on with: it must be the checkpoint's, unless the options say whose wins.
LrSchedule agreed_schedule(const LrSchedule& ours, const LrSchedule& theirs, const CheckpointConfig& config) {
  if (config.override_scheduler) return ours;
  if (config.use_checkpoint_scheduler) return theirs;
  std::string list;
  const auto compare = [&](const char* what, const auto& a, const auto& b) {
    if (a != b) list += concat("\n  ", what, ": checkpoint ", a, ", command line ", b);
  };
  compare("--lr", theirs.max, ours.max);
  compare("--min-lr", theirs.min, ours.min);
  compare("--lr-decay-style", std::string(enum_name(theirs.decay)), std::string(enum_name(ours.decay)));
  compare("--lr-warmup-iters, in samples", theirs.warmup, ours.warmup);
  compare("--lr-decay-iters, in samples", theirs.decay_end, ours.decay_end);
  if (!list.empty())
    fail(ErrorKind::kUsage, config.load,
         ": the checkpoint's learning rate schedule is another one; give --override-opt_param-scheduler to "
         "take the command "
         "line's, or --use-checkpoint-opt_param-scheduler to keep the checkpoint's:",
         list);
  return ours;
}

/// Where the figures are kept: the report is drawn from them, so with one they must be somewhere.
std::string metrics_path(const TrainConfig& train) {
  return train.log_json.empty() && !train.report.empty() ? train.report + ".jsonl" : train.log_json;
}

/// One call of train_rank().
class Run {
 public:
  explicit Run(const RankInput& in)
      : config_(in.config),
        data_(in.data),
        tokenizer_(in.tokenizer),
        stop_(in.stop),
        world_(in.world),
        backend_(make_backend(in.config.train.device)) {
    const std::unique_ptr<CheckpointReader> checkpoint = open_checkpoint(config_.checkpoint, world_);
    if (checkpoint && checkpoint->has_file(kArgsFile)) take_args(*checkpoint);
    if (!config_.checkpoint.save.empty()) {
      make_shared_folder(world_, config_.checkpoint.save);
      if (leads()) lock_.emplace(config_.checkpoint.save);
    }
    const RunShape shape = agreed_shape(in.ranks_here > 0 ? in.ranks_here : world_.size());
    trainer_ = std::make_unique<Trainer>(shape, *backend_, world_);
    schedule_ = make_lr_schedule(config_.train);
    do_together(world_, config_.parallel.peer_timeout(), [&](const auto&) {
      if (checkpoint)
        load(*checkpoint);
      else
        trainer_->initialize();
    });
    check_data();
    make_saver();
  }

  PretrainResult go();

 private:
  int64_t iterations() const { return *config_.train.iters; }
  int64_t global_batch() const { return config_.train.global_batch; }
  bool resumes(const CheckpointReader& checkpoint) const {
    return !config_.checkpoint.finetune && checkpoint.iteration() != kRelease;
  }

  RunShape agreed_shape(int ranks_here) const;
  void make_saver();
  void take_args(const CheckpointReader&);
  void load(const CheckpointReader&);
  void check_data() const;
  void start_log();
  void step();
  void stop_when_lost(const Trainer::StepResult&);
  void set_traced();
  void write_trace();
  double mean_loss(const DataSet&, int64_t first_sample) const;
  void evaluate(const std::string& where);
  void final_evaluations();
  void sample();
  void save();
  bool leads() const { return world_.rank() == 0; }
  bool wants_to_stop() const;
  std::string agreed_reason() const;
  bool asked_to_end();

  PretrainConfig config_;
  const DataSets& data_;
  const Tokenizer* tokenizer_;
  const StopSignal& stop_;
  Communicator& world_;
  std::optional<LockFile> lock_;  // of --save, the first rank's
  std::string base_;  // the checkpoint of another --load, which the same command will look for again; or none
  std::optional<CheckpointUse> base_use_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Trainer> trainer_;
  LrSchedule schedule_;
  TrainState state_;
  LossHistory losses_;
  int64_t start_ = 0;   // iterations done before this run
  int64_t saved_ = -1;  // iteration of this run's last checkpoint
  int64_t skips_in_a_row_ = 0;
  double last_loss_ = 0;
  Clock::time_point began_ = Clock::now();
  std::unique_ptr<RunLog> run_log_;
  std::unique_ptr<TrainLine> line_;
  std::unique_ptr<Saver> saver_;  // null: there is no --save
  bool stop_agreed_ = false;
  std::string end_reason_ = "done", stopped_by_;
};

/// The first rank looks at the memory of its machine for all.
RunShape Run::agreed_shape(int ranks_here) const {
  RunShape shape{config_.model, config_.parallel, config_.train};
  if (leads()) {
    // A device of its own refuses by itself what it has no memory for.
    const bool on_host = backend_->name() == std::string_view("cpu");
    const MachineMemory machine{on_host ? available_memory() : std::nullopt, ranks_here};
    shape.save_copy = chosen_save_copy(config_.checkpoint, shape, machine);
    const std::vector<ModelRank> ranks = memory_of_model(shape);
    require_memory(shape, ranks, machine);
    log_parameters(ranks);
  }
  const std::string chosen = world_.exchange(std::to_string(static_cast<int>(shape.save_copy))).front();
  shape.save_copy = static_cast<RunShape::SaveCopy>(*parse_int(chosen));
  return shape;
}

void Run::make_saver() {
  const CheckpointConfig& config = config_.checkpoint;
  if (config.save.empty()) return;
  SaverOptions options{
      .root = config.save, .keep_last = config.keep_last, .peer_timeout = config_.parallel.peer_timeout()};
  if (!base_.empty()) options.used.push_back(base_);
  options.complete = [this](int64_t iteration, const std::string& path) {
    log("  successfully saved checkpoint from iteration ", padded_iteration(iteration), " to ", path);
    run_log_->saved(iteration, path);
    run_log_->flush();
    saved_ = iteration;
  };
  saver_ = std::make_unique<Saver>(*trainer_, std::move(options));
}

void Run::take_args(const CheckpointReader& checkpoint) {
  const Json args = checkpoint.json(kArgsFile);
  require_same_model(config_.model, args, checkpoint.path());
  if (!resumes(checkpoint)) return;
  for (const Difference& d : sample_order_differences(config_, args, checkpoint.path()))
    warn("--", d.name, " is ", d.ours, ", was ", d.theirs,
         " when the checkpoint was saved: samples come in another order now");
  const Json* seed = args.find("seed");
  if (!config_.checkpoint.load_rng || !seed || seed->as_int() == config_.train.seed) return;
  log("dropout goes on with the checkpoint's --seed ", seed->as_int(),
      " (--no-load-rng takes the command line's)");
  config_.train.seed = seed->as_int();
}

void Run::load(const CheckpointReader& checkpoint) {
  log(" loading checkpoint from ", checkpoint.path());
  if (config_.checkpoint.load != config_.checkpoint.save) base_use_.emplace(base_ = checkpoint.path());
  const bool wide = model_dtype(config_.train) == DType::kF32;
  load_params(checkpoint, trainer_->params(), trainer_->stream(),
              wide && resumes(checkpoint) ? ParamSource::kMasters : ParamSource::kValues);
  trainer_->optimizer().take_values(trainer_->stream());
  if (resumes(checkpoint)) {
    state_ = saved_state(checkpoint);
    if (checkpoint.has_file(kLossesFile)) losses_ = LossHistory::from_json(checkpoint.json(kLossesFile));
    if (config_.checkpoint.load_optim) {
      load_optimizer(checkpoint, *trainer_);
      schedule_ = agreed_schedule(schedule_, saved_schedule(checkpoint), config_.checkpoint);
    }
  }
  start_ = state_.iteration;
  log("  successfully loaded checkpoint from ", checkpoint.path(), " at iteration ", state_.iteration);
}

void Run::check_data() const {
  const int64_t wanted = state_.consumed_train + (iterations() - state_.iteration) * global_batch();
  if (state_.iteration < iterations() && data_.train.size < wanted)
    fail(ErrorKind::kUsage, "the run needs ", format_count(wanted), " training samples, the data sets have ",
         format_count(data_.train.size),
         "; lower --train-iters, or give --data-path weights so that data is used again");
}

void Run::start_log() {
  RunLogOptions where{.start = start_, .global_batch = global_batch()};
  if (leads()) {
    where.tensorboard = config_.train.tensorboard;
    where.json = metrics_path(config_.train);
  }
  run_log_ = std::make_unique<RunLog>(where);
  run_log_->start({{"iteration", start_},
                   {"iterations", iterations()},
                   {"parameters", trainer_->memory().parameters},
                   {"memory_bytes", static_cast<int64_t>(trainer_->memory().total())},
                   {"args", to_json(config_)}});
  line_ = std::make_unique<TrainLine>(iterations(), global_batch());
}

PretrainResult Run::go() {
  start_log();
  if (config_.train.eval_iters > 0 && data_.valid.size == 0)
    warn("no evaluations: --split ", quote(config_.data.split), " leaves no validation data");
  {
    log("training ...");
    Progress progress("training", iterations() - start_, "steps");
    bool ended = false;
    while (!ended && state_.iteration < iterations()) {
      step();
      progress.advance_to(state_.iteration - start_, concat("loss ", format_fixed(last_loss_, 3)));
      if (state_.iteration % config_.train.eval_interval == 0) {
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
  write_trace();
  run_log_->end(state_.iteration, end_reason_);
  if (leads() && !config_.train.report.empty())
    write_report(metrics_path(config_.train), config_.train.report);
  return {.iteration = state_.iteration, .stopped_by = stopped_by_, .saved = saved_ == state_.iteration};
}

void Run::set_traced() {
  const TrainConfig& train = config_.train;
  if (!train.trace.empty())
    trainer_->set_traced(state_.iteration >= train.trace_begin && state_.iteration < train.trace_end);
}

void Run::write_trace() {
  const TrainConfig& train = config_.train;
  if (train.trace.empty()) return;
  if (state_.iteration <= train.trace_begin || start_ >= train.trace_end)
    warn("--trace ", train.trace, " holds no step: the run's were ", start_ + 1, " to ", state_.iteration,
         ", --profile-step-start is ", train.trace_begin, ", --profile-step-end ", train.trace_end);
  const Coord& at = trainer_->groups().at;
  write_run_trace(train.trace, world_,
                  concat("rank ", world_.rank(), ": tensor ", at.tensor, ", context ", at.context, ", data ",
                         at.data, ", pipeline ", at.pipeline),
                  trainer_->take_trace());
}

void Run::step() {
  set_traced();
  const auto start = Clock::now();
  const Trainer::StepResult result =
      trainer_->step(data_.train.read, state_.consumed_train, schedule_.at(state_.schedule_samples),
                     [this] { return wants_to_stop(); });
  stop_agreed_ = result.stop;
  ++state_.iteration;
  state_.consumed_train += global_batch();
  if (result.skipped)
    ++state_.skipped;
  else
    state_.schedule_samples += global_batch();
  const StepFigures figures{.iteration = state_.iteration,
                            .consumed_samples = state_.consumed_train,
                            .loss = result.loss,
                            .learning_rate = schedule_.at(state_.schedule_samples),
                            .grad_norm = result.grad_norm,
                            .seconds = seconds_since(start),
                            .tokens = global_batch() * config_.model.seq_length,
                            .skipped = result.skipped};
  last_loss_ = result.loss;
  if (!result.skipped) losses_.add_train(state_.iteration, result.loss);
  line_->add(figures);
  run_log_->step(figures);
  if (state_.iteration % config_.train.log_interval == 0) {
    log(line_->text());
    line_->clear();
    run_log_->flush();
  }
  stop_when_lost(result);
}

void Run::stop_when_lost(const Trainer::StepResult& result) {
  if (!result.skipped) {
    skips_in_a_row_ = 0;
    return;
  }
  const int64_t first = state_.consumed_train - global_batch();
  const std::string what = concat("loss ", result.loss, ", gradient norm ", result.grad_norm);
  warn("iteration ", state_.iteration, " is skipped: ", what, "; samples ", first, " to ",
       state_.consumed_train - 1);
  if (++skips_in_a_row_ < kMostSkipsInARow) return;
  if (saver_) saver_->finish();  // an earlier state, which is to go on from
  run_log_->end(state_.iteration, "not finite");
  fail(ErrorKind::kData, "iterations ", state_.iteration - kMostSkipsInARow + 1, " to ", state_.iteration,
       " were not finite (", what, "), samples ", state_.consumed_train - kMostSkipsInARow * global_batch(),
       " to ", state_.consumed_train - 1,
       " of the training order; lower --lr or raise --lr-warmup-iters and go on from ",
       saved_ >= 0 || !config_.checkpoint.save.empty()
           ? concat("the last checkpoint in ", quote(config_.checkpoint.save))
           : std::string("an earlier checkpoint"));
}

double Run::mean_loss(const DataSet& set, int64_t first_sample) const {
  // An evaluation set that is used up begins anew.
  const SampleReader read = [&](int64_t index, const SampleView& out) { set.read(index % set.size, out); };
  double sum = 0;
  for (int64_t i = 0; i < config_.train.eval_iters; ++i)
    sum += trainer_->evaluate(read, first_sample + i * global_batch());
  return sum / static_cast<double>(config_.train.eval_iters);
}

void Run::evaluate(const std::string& where) {
  if (data_.valid.size == 0 || config_.train.eval_iters == 0) return;
  const double loss = mean_loss(data_.valid, state_.consumed_valid);
  state_.consumed_valid += config_.train.eval_iters * global_batch();
  log(evaluation_line(where, loss));
  run_log_->evaluation("valid", state_.iteration, loss);
  losses_.add_valid(state_.iteration, loss);
}

void Run::final_evaluations() {
  evaluate(concat("iteration ", state_.iteration, " on validation set"));
  if (data_.test.size > 0 && config_.train.eval_iters > 0) {
    const double loss = mean_loss(data_.test, 0);
    log(evaluation_line(concat("iteration ", state_.iteration, " on test set"), loss));
    run_log_->evaluation("test", state_.iteration, loss);
  }
  if (state_.iteration % config_.train.eval_interval != 0) sample();
}

void Run::sample() {
  if (config_.train.sample_prompt.empty() || !leads()) return;
  const std::string text =
      sample_text(trainer_->stage(), trainer_->stream(), *tokenizer_, config_.train.sample_prompt,
                  SampleOptions{.max_new_tokens = config_.train.sample_tokens});
  log("Generated Sample Text: ", text);
  run_log_->sample(state_.iteration, config_.train.sample_prompt, text);
}

/// Unless it was begun already.
void Run::save() {
  if (!saver_ || saver_->begun() == state_.iteration) return;
  log("saving checkpoint at iteration ", padded_iteration(state_.iteration), " to ", config_.checkpoint.save);
  saver_->start(state_, {.args = to_json(config_),
                         .schedule = schedule_,
                         .tokenizer_files = tokenizer_files(config_.tokenizer),
                         .optimizer = config_.checkpoint.save_optim,
                         .losses = losses_});
}

// Asked within a step, so that the ranks agree with the loss; the clock is the first rank's.
bool Run::wants_to_stop() const {
  const auto minutes = config_.train.exit_minutes;
  return stop_.asked() ||
         (leads() && minutes && seconds_since(began_) > 60.0 * static_cast<double>(*minutes));
}

// The signal that the first rank which got one names; empty: time is up.
std::string Run::agreed_reason() const {
  for (const std::string& name : world_.exchange(stop_.name()))
    if (!name.empty()) return name;
  return {};
}

// Megatron's checkpoint_and_decide_exit: what may end a run between two steps, each with the state saved.
bool Run::asked_to_end() {
  const TrainConfig& train = config_.train;
  const auto end = [&](std::string reason) {
    save();
    end_reason_ = std::move(reason);
    return true;
  };
  if (stop_agreed_) stopped_by_ = agreed_reason();
  if (!stopped_by_.empty()) return end(stopped_by_);
  if (config_.checkpoint.save_interval && state_.iteration % *config_.checkpoint.save_interval == 0) save();
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

// OMP_NUM_THREADS is what OpenMP would take by itself.
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

PretrainResult train_rank(const RankInput& input) {
  return Run(input).go();
}

PretrainResult train(const PretrainConfig& config, const DataSets& data, const Tokenizer* tokenizer,
                     const StopSignal& stop, const ThreadLog& thread_log) {
  // The ranks of this process share its cores.
  const int threads = threads_of_a_rank(config, usable_cpus() / config.parallel.world);
  use_threads(threads, config.parallel.world);
  const auto run = [&](Communicator& world) {
    set_cpu_threads(threads);
    return train_rank({config, data, tokenizer, stop, world});
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
                     const StopSignal& stop, const ProcessRank& rank) {
  const int threads = threads_of_a_rank(config, rank.cpu_share);
  use_threads(threads, rank.world.size());
  if (config.train.threads == 0 && threads < rank.cpu_share)
    warn("OMP_NUM_THREADS=", threads, " in the environment (torchrun sets it to 1) leaves ",
         rank.cpu_share - threads, " of each rank's ", rank.cpu_share, " cores idle; give --threads ",
         rank.cpu_share);
  return train_rank({config, data, tokenizer, stop, rank.world, rank.ranks_here});
}

}  // namespace megalith
