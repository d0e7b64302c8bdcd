#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/files/file.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"
#include "libcore/train/log/run_logs.h"
#include "libcore/train/run/run_rules.h"
#include "libcore/train/run/step_tracer.h"
#include "libcore/train/run/train_run.h"
#include "libcore/train/saves/checkpoint_store.h"
#include "libcore/train/step/rank_state.h"

namespace megalith {
namespace {

/// Resolves the checkpoint that --load names, if one exists yet. The first rank's view counts: another run
/// may be writing to the folder, and the ranks would see different checkpoints.
CheckpointConfig with_agreed_checkpoint(CheckpointConfig config, Communicator& world) {
  if (config.load.empty() || config.number) return config;
  std::string name;
  if (world.rank() == 0)
    if (const auto folder = latest_checkpoint(load_path(config)))
      name = std::filesystem::path(*folder).filename();
  name = rank0_value(world, name);
  if (!name.empty()) config.load = load_path(config) + "/" + name;
  return config;
}

}  // namespace

TrainRun::TrainRun(const RankInput& in)
    : config_(in.config),
      data_(in.data),
      tokenizer_(in.tokenizer),
      stop_(in.stop),
      world_(in.world),
      tuning_(in.tuning),
      ranks_here_(in.ranks_here > 0 ? in.ranks_here : in.world.size()),
      backend_(make_backend(in.config.train.device)),
      skips_(config_.train) {
  std::optional<StartPoint> start = find_start(with_agreed_checkpoint(config_.checkpoint, world_),
                                               config_.model, tuning_ ? Trained::kTuned : Trained::kModel);
  if (start) count_in_steps(*start, config_.train, data_.train.epoch);
  if (start && !start->args.is_null()) take_args(*start);
  if (config_.train.fp16 &&
      backend_->name() == std::string_view("cuda"))  // --device gpu, and a GPU was found
    fail(ErrorKind::kUsage, "--fp16 is computed on the CPU only; give --device cpu, or --bf16");
  const RunShape shape = agreed_shape();  // first: a run refused for lack of memory leaves no folder
  if (saves()) {
    make_shared_folder(world_, config_.checkpoint.save);
    if (leads()) take_folder();
  }
  if (leads()) outputs_ = std::make_unique<RunOutputs>(config_.train);
  trainer_ = std::make_unique<Trainer>(shape, *backend_, world_);
  schedule_ = make_lr_schedule(config_.train);
  const StartPoint* const from = start ? &*start : nullptr;
  const auto together = [&](auto&& work) {
    do_together(world_, config_.parallel.peer_timeout(), [&](const auto&) { work(); });
  };
  together([&] { begin_base(from); });
  if (tuning_ && tuning_->preferences) take_preferences(*tuning_->preferences);
  together([&] { begin_trained(from); });
  check_data();
  make_saver();
}

/// Locks --save for this run and removes what killed runs left in it.
void TrainRun::take_folder() {
  const CheckpointConfig& config = config_.checkpoint;
  lock_.emplace(config.save);
  for (const auto& [format, store] : checkpoint_stores()) store->clear_leftovers(config.save, *lock_);
  store_of(config.format).enter(config);
}

/// The first rank checks the memory of its machine for all, so that all reach the same decision.
RunShape TrainRun::agreed_shape() const {
  RunShape shape = run_shape(config_);
  if (tuning_) {
    shape.samples.short_ones = tuning_->short_samples;
    shape.tuning = tuning_->plan;
  }
  if (leads()) {
    // Only for the CPU: a GPU itself refuses what does not fit its memory.
    const bool on_host = backend_->name() == std::string_view("cpu");
    const MachineMemory machine{on_host ? available_memory() : std::nullopt, ranks_here_};
    const SaveCopyChoice chosen =
        chosen_save_copy(config_.train.eval_only ? CheckpointConfig{} : config_.checkpoint, shape, machine);
    shape.save_copy = chosen.copy;
    require_memory(shape, chosen.ranks, machine);
    require_device_memory(chosen.ranks, config_.train.device_memory, on_host);
    log_parameters(chosen.ranks);
  }
  shape.save_copy = rank0_value(world_, shape.save_copy);
  return shape;
}

void TrainRun::make_saver() {
  const CheckpointConfig& config = config_.checkpoint;
  if (!saves()) return;
  SaverOptions options{.root = config.save,
                       .store = store_of(config.format),
                       .keep_last = config.keep_last,
                       .peer_timeout = config_.parallel.peer_timeout()};
  if (!base_.empty()) options.used.push_back(base_);
  options.complete = [this](int64_t iteration, const std::string& path) {
    observers_.saved(iteration, path);
    saved_ = iteration;
    if (iteration == state_.best_iteration) keep_best(path);
  };
  saver_ = std::make_unique<Saver>(*trainer_, std::move(options));
}

/// The run's result is made from the best checkpoint, so --keep-last must not count it among the old ones.
void TrainRun::keep_best(const std::string& path) {
  if (tuning_ && tuning_->keep_best && leads()) best_use_.emplace(path);
}

/// For a partly trained model also reads what the run began with: a checkpoint holds only the trained part.
void TrainRun::begin_base(const StartPoint* start) {
  const bool frozen = tuning_ && tuning_->plan.frozen;
  if (!start) trainer_->initialize();
  if (tuning_ && tuning_->base && (frozen || !start || tuning_->preferences))
    load_params(*tuning_->base, trainer_->params(), trainer_->stream(), ParamSource::kMasters,
                frozen ? ParamChoice::kFrozen : ParamChoice::kAll);
}

// Called before the adapters are read, while they add nothing: their B is zero.
void TrainRun::take_preferences(const Tuning::Preferences& preferences) {
  const Preference::LossesOf losses_of = [this](const SampleSource& all, int64_t first) {
    return trainer_->sample_losses(all, first);
  };
  trainer_->set_judge(Preference(preferences.options, {preferences.examples, preferences.count}, losses_of));
}

void TrainRun::begin_trained(const StartPoint* start) {
  if (start) return load(*start);
  if (!tuning_) return;  // random values already have masters
  if (tuning_->adapters)
    load_params(*tuning_->adapters, trainer_->params(), trainer_->stream(), ParamSource::kValues,
                ParamChoice::kTrained);
  trainer_->optimizer().take_values(trainer_->stream());
}

void TrainRun::take_args(const StartPoint& start) {
  require_same_model(config_.model, start.args, start.path);
  if (!resumes(start)) return;
  for (const Difference& d : sample_order_differences(config_, start.args, start.path))
    warn("--", d.name, " is ", d.ours, ", but was ", d.theirs,
         " when the checkpoint was saved: samples now come in another order");
  const Json* seed = start.args.find("seed");
  if (!config_.checkpoint.load_rng || !seed || seed->as_int() == config_.train.seed) return;
  log("dropout continues with the checkpoint's --seed ", seed->as_int(),
      " (--no-load-rng takes the command line's)");
  config_.train.seed = seed->as_int();
}

void TrainRun::load(const StartPoint& start) {
  log(" loading checkpoint from ", start.path);
  if (config_.checkpoint.load != config_.checkpoint.save && std::filesystem::is_directory(start.path))
    base_use_.emplace(base_ = start.path);
  // A resumed run of another precision must read the masters, or it would lose their extra bits; at the same
  // precision they equal the values.
  load_params(*start.tensors, trainer_->params(), trainer_->stream(),
              resumes(start) ? ParamSource::kMasters : ParamSource::kValues, ParamChoice::kTrained);
  trainer_->optimizer().take_values(trainer_->stream());
  if (resumes(start)) {
    state_ = *start.state;
    losses_ = start.losses;
    if (config_.checkpoint.load_optim && !config_.train.eval_only) load_optimizer_state(start);
  } else if (!start.state) {
    if (saves() && !start.no_fresh_start.empty()) fail(ErrorKind::kNoInput, start.no_fresh_start);
    log(start.path, " holds only weights: training begins at iteration 0");
  }
  start_ = state_.iteration;
  seen_tokens_ = tokens_of(0, state_.consumed_train);
  if (resumes(start) && state_.best_iteration > 0)
    keep_best(concat(config_.checkpoint.save, "/", iteration_folder(state_.best_iteration)));
  log("  successfully loaded checkpoint from ", start.path, " at iteration ", state_.iteration);
}

// Fresh moments without a warning would look like a bad step. For our own checkpoints the user chose to save
// none.
void TrainRun::load_optimizer_state(const StartPoint& start) {
  if (start.optimizer_steps)
    load_optimizer(*start.tensors, *start.optimizer_steps, trainer_->optimizer(), trainer_->stream());
  else if (!start.no_optimizer.empty())
    warn(start.path, ": no optimizer state (", start.no_optimizer, "): continuing with fresh moments");
  else
    fail(ErrorKind::kData, start.path,
         ": holds no optimizer state; give --no-load-optim to continue with fresh moments");
  schedule_ = agreed_schedule(schedule_, start, config_.checkpoint);
  LossScale& scale = trainer_->loss_scale();
  if (!scale.dynamic()) return;
  if (start.loss_scale.is_null())
    log("no loss scale in ", start.path, ": beginning with ", scale.value());
  else
    scale.take(start.loss_scale);
}

void TrainRun::check_data() const {
  const TrainConfig& train = config_.train;
  const int64_t left = iterations() - state_.iteration;
  const int64_t wanted = state_.consumed_train + train.samples_of_steps(left, state_.consumed_train);
  if (left > 0 && !train.eval_only && data_.train.size == 0 && !tuning_ && !config_.data.has_own_paths())
    fail(ErrorKind::kUsage, "--split ", quote(config_.data.split),
         " leaves no training data; give --split a larger share for it, the first number");
  if (left > 0 && !train.eval_only && data_.train.size < wanted)
    fail(ErrorKind::kUsage, "the run needs ", format_count(wanted),
         " training samples, but the data sets have ", format_count(data_.train.size),
         "; lower --train-iters, or give --data-path weights so that data is reused");
}

void TrainRun::observe() {
  const int64_t epoch_steps = data_.train.epoch / global_batch();
  const ObservedRun run{.config = config_,
                        .world = world_,
                        .at = trainer_->groups().at,
                        .ranks_here = ranks_here_,
                        .start = start_,
                        .epoch_steps = epoch_steps,
                        .parameters = trainer_->memory().parameters,
                        .memory = trainer_->memory().total()};
  if (!config_.train.trace.empty()) observers_.add(std::make_unique<StepTracer>(run, *trainer_));
  add_run_logs(observers_, run, std::move(outputs_));
  const ObserverNeeds needs = observers_.needs();
  trainer_->keep_own_loss(needs.own_loss);
  evaluations_.emplace(config_.train, data_, *trainer_, needs.train_loss);
  const StepCount count{needs.steps_from_zero, epoch_steps};
  evaluation_interval_ = evaluation_interval(config_.train.eval_interval, count);
  save_interval_ = save_interval(config_.checkpoint, count);
}

}  // namespace megalith
