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
#include "libcore/train/checkpointing.h"
#include "libcore/train/metrics.h"
#include "libcore/train/report.h"
#include "libcore/train/run_rules.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

// A single bad step may come from bad data; after so many in a row the model itself is lost.
constexpr int64_t kMostSkipsInARow = 3;

std::string padded_iteration(int64_t iteration) {
  const std::string digits = std::to_string(iteration);
  return std::string(7 - std::min<size_t>(7, digits.size()), ' ') + digits;
}

/// The checkpoint that --load names, if there is one yet.
std::unique_ptr<CheckpointReader> open_checkpoint(const CheckpointConfig& config) {
  if (config.load.empty()) return nullptr;
  if (const auto folder = latest_checkpoint(config.load)) return std::make_unique<CheckpointReader>(*folder);
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

/// Bytes of the run's ranks on this machine. Of several machines the first one is looked at, as if all ranks
/// on it were like rank 0.
size_t bytes_here(const RunShape& run, const std::vector<ModelRank>& ranks, int ranks_here) {
  if (ranks_here < run.parallel.world) return ranks.front().memory.total() * static_cast<size_t>(ranks_here);
  size_t sum = 0;
  for (const ModelRank& rank : ranks) sum += rank.memory.total();
  return sum * static_cast<size_t>(run.parallel.copies());
}

/// A device of its own refuses by itself what it has no memory for.
void require_memory(const RunShape& run, const std::vector<ModelRank>& ranks, const Backend& backend,
                    int ranks_here) {
  const std::string first = ranks.front().memory.text();
  const size_t all = bytes_here(run, ranks, ranks_here);
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  if (run.parallel.world == 1)
    log("memory known before the run: ", first);
  else
    log("memory known before the run: rank 0: ", first, "; all ", ranks_here, " ranks",
        ranks_here < run.parallel.world ? " of this machine: " : ": ", bytes(all));
  const auto available = backend.name() == std::string_view("cpu") ? available_memory() : std::nullopt;
  if (available && all > *available)
    fail(ErrorKind::kUsage, "the run needs ", bytes(all), " of memory (",
         run.parallel.world == 1 ? first : concat(ranks_here, " ranks, the first one ", first),
         "), this machine has ", bytes(*available),
         " left; lower --micro-batch-size, give --recompute-granularity full --recompute-method uniform, or "
         "take a smaller model");
}

/// As Megatron logs it, for each rank of the model.
void log_parameters(const std::vector<ModelRank>& ranks) {
  for (const auto& [at, memory] : ranks)
    log(" > number of parameters on (tensor, pipeline) model parallel rank (", at.tensor, ", ", at.pipeline,
        "): ", memory.parameters);
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
        tuning_(in.tuning),
        backend_(make_backend(in.config.train.device)) {
    const std::unique_ptr<CheckpointReader> checkpoint = open_checkpoint(config_.checkpoint);
    if (checkpoint && checkpoint->has_file(kArgsFile)) take_args(*checkpoint);
    if (!config_.checkpoint.save.empty() && leads()) {
      make_directories(config_.checkpoint.save);  // or fail now, not at the first save
      lock_.emplace(config_.checkpoint.save);
    }
    const RunShape shape = shape_of_run();
    if (leads()) {
      const std::vector<ModelRank> ranks = memory_of_model(shape);
      require_memory(shape, ranks, *backend_, in.ranks_here > 0 ? in.ranks_here : world_.size());
      log_parameters(ranks);
    }
    trainer_ = std::make_unique<Trainer>(shape, *backend_, world_);
    schedule_ = make_lr_schedule(config_.train);
    begin_values(checkpoint.get());
    check_data();
  }

  PretrainResult go();

 private:
  int64_t iterations() const { return *config_.train.iters; }
  int64_t global_batch() const { return config_.train.global_batch; }
  bool resumes(const CheckpointReader& checkpoint) const {
    return !config_.checkpoint.finetune && checkpoint.iteration() != kRelease;
  }

  RunShape shape_of_run() const;
  void begin_values(const CheckpointReader*);
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
  void note_evaluation(double loss);
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
  const Tuning* tuning_;
  std::optional<LockFile> lock_;  // of --save, the first rank's
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
  bool stop_agreed_ = false, no_better_ = false;
  std::string end_reason_ = "done", stopped_by_;
};

RunShape Run::shape_of_run() const {
  return {.model = config_.model,
          .parallel = config_.parallel,
          .train = config_.train,
          .samples = {.attention_starts = config_.data.reset_attention_mask,
                      .position_starts = config_.data.reset_position_ids,
                      .short_ones = tuning_ && tuning_->short_samples},
          .tuning = tuning_ ? tuning_->plan : TuningPlan{}};
}

/// A checkpoint holds what is trained; the rest is what the run began with.
void Run::begin_values(const CheckpointReader* checkpoint) {
  const bool frozen = tuning_ && tuning_->plan.frozen;
  Stream& stream = trainer_->stream();
  if (!checkpoint) trainer_->initialize();
  if (tuning_ && tuning_->base && (frozen || !checkpoint)) {
    load_params(*tuning_->base, trainer_->params(), stream, ParamSource::kMasters,
                frozen ? ParamChoice::kFrozen : ParamChoice::kAll);
    if (tuning_->adapters && !checkpoint)
      load_params(*tuning_->adapters, trainer_->params(), stream, ParamSource::kValues,
                  ParamChoice::kTrained);
    trainer_->optimizer().take_values(stream);
  }
  if (checkpoint) load(*checkpoint);
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
  const bool wide = model_dtype(config_.train) == DType::kF32;
  load_params(checkpoint, trainer_->params(), trainer_->stream(),
              wide && resumes(checkpoint) ? ParamSource::kMasters : ParamSource::kValues,
              ParamChoice::kTrained);
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
      ended = asked_to_end();
    }
    if (!ended) {
      if (saved_ != state_.iteration && state_.iteration > start_) save();
      final_evaluations();
    }
  }
  if (state_.iteration > start_) trainer_->check_memory();
  write_trace();
  run_log_->end(state_.iteration, end_reason_);
  if (leads() && !config_.train.report.empty())
    write_report(metrics_path(config_.train), config_.train.report);
  return {.iteration = state_.iteration,
          .stopped_by = stopped_by_,
          .saved = saved_ == state_.iteration,
          .best = state_.best_iteration};
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
  run_log_->end(state_.iteration, "not finite");
  fail(ErrorKind::kData, "iterations ", state_.iteration - kMostSkipsInARow + 1, " to ", state_.iteration,
       " were not finite (", what, "), samples ", state_.consumed_train - kMostSkipsInARow * global_batch(),
       " to ", state_.consumed_train - 1,
       " of the training order; lower --lr or raise --lr-warmup-iters and go on from ",
       saved_ >= 0 || !config_.checkpoint.save.empty()
           ? concat("the last checkpoint in ", quote(config_.checkpoint.save))
           : std::string("an earlier checkpoint"));
}

/// A set that begins anew when it is used up.
SampleSource repeated(const DataSet& set) {
  SampleSource out = [&](int64_t index, const SampleView& view) { set.read.read(index % set.size, view); };
  if (set.read.length) out.length = [&](int64_t index) { return set.read.length(index % set.size); };
  if (set.read.counted) out.counted = [&](int64_t index) { return set.read.counted(index % set.size); };
  return out;
}

/// Of one step in a mean over several: its labels that count, where these are known.
double weight_of(const SampleSource& source, int64_t first, int64_t end) {
  if (!source.counted) return 1;
  int64_t sum = 0;
  for (int64_t i = first; i < end; ++i) sum += source.counted(i);
  return static_cast<double>(sum);
}

double Run::mean_loss(const DataSet& set, int64_t first_sample) const {
  const SampleSource source = repeated(set);
  double sum = 0, all = 0;
  for (int64_t i = 0; i < config_.train.eval_iters; ++i) {
    const int64_t first = first_sample + i * global_batch();
    const double weight = weight_of(source, first, first + global_batch());
    if (weight > 0) sum += weight * trainer_->evaluate(source, first);
    all += weight;
  }
  return sum / std::max(all, 1.0);
}

void Run::evaluate(const std::string& where) {
  if (data_.valid.size == 0 || config_.train.eval_iters == 0) return;
  const double loss = mean_loss(data_.valid, state_.consumed_valid);
  state_.consumed_valid += config_.train.eval_iters * global_batch();
  log(evaluation_line(where, loss));
  run_log_->evaluation("valid", state_.iteration, loss);
  losses_.add_valid(state_.iteration, loss);
  note_evaluation(loss);
}

// Every rank has the same loss, so that all of them decide alike.
void Run::note_evaluation(double loss) {
  if (!tuning_) return;
  if (!state_.best_loss || loss < *state_.best_loss - tuning_->threshold) {
    state_.best_loss = loss;
    state_.best_iteration = state_.iteration;
    state_.worse_evaluations = 0;
    if (tuning_->keep_best && saved_ != state_.iteration) save();
  } else if (++state_.worse_evaluations >= tuning_->patience && tuning_->patience > 0) {
    no_better_ = true;
  }
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

void Run::save() {
  if (config_.checkpoint.save.empty()) return;
  log("saving checkpoint at iteration ", padded_iteration(state_.iteration), " to ", config_.checkpoint.save);
  Json args = to_json(config_);
  if (tuning_)
    for (const auto& [name, value] : tuning_->args) args.set(name, value);
  const std::string path = save_checkpoint(config_.checkpoint.save, state_, *trainer_,
                                           {.args = std::move(args),
                                            .schedule = schedule_,
                                            .tokenizer_files = tokenizer_files(config_.tokenizer),
                                            .optimizer = config_.checkpoint.save_optim,
                                            .losses = losses_});
  log("  successfully saved checkpoint from iteration ", padded_iteration(state_.iteration), " to ", path);
  run_log_->saved(state_.iteration, path);
  run_log_->flush();
  saved_ = state_.iteration;
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
    if (saved_ != state_.iteration) save();
    end_reason_ = std::move(reason);
    return true;
  };
  if (stop_agreed_) stopped_by_ = agreed_reason();
  if (!stopped_by_.empty()) return end(stopped_by_);
  if (config_.checkpoint.save_interval && state_.iteration % *config_.checkpoint.save_interval == 0) save();
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
                     const StopSignal& stop, const Tuning* tuning) {
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
