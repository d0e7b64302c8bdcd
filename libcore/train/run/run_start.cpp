#include "libcore/train/run/run_start.h"

#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/json/json_names.h"
#include "libcore/parallel/exchange.h"
#include "libcore/train/log/device_memory.h"
#include "libcore/train/run/run_rules.h"
#include "libcore/train/run/same_data.h"
#include "libcore/train/saves/same_start.h"
#include "libcore/train/step/memory_limits.h"
#include "libcore/train/step/rank_state.h"

namespace megalith {
namespace {

/// Replaces --load by the checkpoint that it names, if one exists yet. The first rank chooses it for all:
/// another run may be writing to the folder, so the ranks might see different newest checkpoints.
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

/// Whether the run resumes from its own folder, although no option asks for a checkpoint.
bool resumes_by_itself(const CheckpointConfig& config) {
  return config.load_named_by == "--output-dir";
}

/// What the user can give in place of a checkpoint that does not fit the run.
std::string ways_out(const CheckpointConfig& config) {
  if (resumes_by_itself(config)) return "another --output-dir, or --overwrite-output-dir to replace that run";
  return concat("another ", config.load_named_by.empty() ? "--load" : config.load_named_by);
}

/// Throws kUsage if another run than this one saved `start`. Other records to evaluate on are only warned of,
/// and so are other data if the user chose the checkpoint.
void require_same_run(const Tuning& tuning, const StartPoint& start, const CheckpointConfig& config) {
  constexpr std::pair<const char*, const char*> kParts[] = {
      {"model", "another model (--model)"},
      {"adapter", "another adapter to begin with (--adapter)"},
      {"method", "another method, or other settings of it"},
      {"data", "other records to train on (--data)"},
      {"evaluated", "other records to evaluate on: its evaluations cannot be compared"}};
  const Json ours = Json(tuning.args);
  const Json *run = ours.find(kTuningRun), *theirs = start.args.find(kTuningRun);
  if (!run || !theirs) return;  // checkpoints of earlier versions do not say
  std::vector<std::string> others;
  for (const auto& [name, what] : kParts) {
    const Json *mine = run->find(name), *saved = theirs->find(name);
    if (!mine || !saved || *mine == *saved) continue;
    if (name == std::string_view("evaluated") ||
        (name == std::string_view("data") && !resumes_by_itself(config)))
      warn(start.path, ": the run that saved it has ", what);
    else
      others.emplace_back(what);
  }
  if (!others.empty())
    fail(ErrorKind::kUsage, start.path, ": another run saved it, with ", join(others, " and "), "; give ",
         ways_out(config));
}

/// Warns if the contents of the data have changed since `start` was saved.
void warn_of_other_data(const DataConfig& data, const StartPoint& start) {
  const Json* const saved = start.args.find(kDataDigests);
  if (!saved || !saved->is_array()) return;
  const Json ours = data_digests(data);
  if (ours.is_null() || *saved == ours) return;
  const Json::Array &theirs = saved->as_array(), &mine = ours.as_array();
  std::vector<std::string> which;
  for (size_t i = 0; i < mine.size() && theirs.size() == mine.size(); ++i)
    if (theirs[i] != mine[i]) which.push_back(concat(i + 1));
  warn("the data have other contents than when ", start.path, " was saved",
       mine.size() > 1 && !which.empty() ? concat(" (dataset ", join(which, ", "), " of ", mine.size(), ")")
                                         : "",
       ": what follows is not the rest of that run's samples");
}

void take_args(const RankInput& in, const StartPoint& start, PretrainConfig& config) {
  const JsonNames names(start.args, start.args_place);
  PretrainConfig readable;  // args that cannot be read are refused here, where their file is known
  from_json(readable, start.args, start.args_place);
  require_same_model(config.model, start.args, start.path, ways_out(config.checkpoint));
  if (!config.model.hf_model_type) config.model.hf_model_type = readable.model.hf_model_type;
  if (!resumes(config.checkpoint, start)) return;
  if (in.tuning) require_same_run(*in.tuning, start, config.checkpoint);
  for (const Difference& d : sample_order_differences(config, start.args, start.path))
    warn("--", d.name, " is ", d.ours, ", but was ", d.theirs,
         " when the checkpoint was saved: samples now come in another order");
  warn_of_other_data(config.data, start);
  const Json* seed = start.args.find("seed");
  if (!config.checkpoint.load_rng || !seed || seed->as_int() == config.train.seed) return;
  log("dropout continues with the checkpoint's --seed ", seed->as_int(),
      " (--no-load-rng takes the command line's)");
  config.train.seed = seed->as_int();
}

std::vector<Origin> origins_of(const RankInput& in, const StartPoint* start) {
  const TensorFile* const loaded = start ? start->tensors.get() : nullptr;
  if (!in.tuning) return {{"--load", loaded, start}};
  return {{"--resume-from-checkpoint or --output-dir", loaded, start},
          {"--model", in.tuning->base},
          {"--adapter", in.tuning->adapters}};
}

/// The memory of the GPUs of all ranks, by rank; empty on the CPU. Collective.
std::vector<cuda::DeviceMemory> memory_of_gpus(Communicator& world, const Backend& backend) {
  const std::optional<cuda::DeviceMemory> mine = device_memory(backend);
  if (!mine) return {};
  return exchange_values(world, *mine);
}

/// Bytes of this machine's memory that the data of its ranks hold. Ranks that are threads have the same data;
/// the ranks of a machine are numbered one after another. Collective.
size_t data_here(const RankInput& in) {
  size_t mine = in.data.held;
  if (in.tuning && in.tuning->preferences)  // a loss under the reference for each example
    mine += static_cast<size_t>(in.tuning->preferences->count) * sizeof(double);
  const std::vector<size_t> all = exchange_values(in.world, mine);
  if (!in.place.own_process) return mine;
  const auto here = static_cast<std::ptrdiff_t>(in.ranks_on_machine());
  return std::accumulate(all.begin(), all.begin() + here, size_t{0});
}

}  // namespace

std::optional<StartPoint> find_run_start(const RankInput& in, PretrainConfig& config) {
  std::optional<StartPoint> start = find_start(with_agreed_checkpoint(config.checkpoint, in.world),
                                               config.model, in.tuning ? Trained::kTuned : Trained::kModel);
  require_same_start(in.world, config.parallel.peer_timeout(), origins_of(in, start ? &*start : nullptr));
  if (start) count_in_steps(*start, config.train, in.data.train.epoch);
  if (start && !start->args.is_null()) take_args(in, *start, config);
  return start;
}

bool resumes(const CheckpointConfig& config, const StartPoint& start) {
  return !config.finetune && start.state;
}

RunShape agreed_shape(const RankInput& in, const PretrainConfig& config, const RankDevice& device,
                      const RunTasks& tasks) {
  RunShape shape = run_shape(config);
  shape.train.device = device.backend->name();
  if (in.tuning) {
    shape.samples.short_ones = in.tuning->short_samples;
    shape.samples.gaps = in.tuning->by_accuracy;
    shape.tuning = in.tuning->plan;
  }
  const std::vector<cuda::DeviceMemory> gpus = memory_of_gpus(in.world, *device.backend);
  const size_t data = data_here(in);
  if (in.world.rank() == 0) {
    MemoryLeft left = ask_memory(shape, in.ranks_on_machine(), {gpus, device.sharers});
    left.data = data;
    shape.task_bytes = tasks.bytes(shape);
    const SaveCopyChoice chosen =
        chosen_save_copy(config.train.eval_only ? CheckpointConfig{} : config.checkpoint, shape, left);
    shape.save_copy = chosen.copy;
    require_memory(shape, chosen.ranks, left);
    log_parameters(chosen.ranks);
  }
  shape.save_copy = rank0_value(in.world, shape.save_copy);
  shape.vocabulary = rank0_value(in.world, shape.vocabulary);
  shape.nccl = rank0_value(in.world, shape.nccl);
  shape.task_bytes = rank0_value(in.world, shape.task_bytes);
  return shape;
}

void take_base_values(const RankInput& in, Trainer& trainer, bool has_start) {
  const bool frozen = in.tuning && in.tuning->plan.frozen;
  if (!has_start) trainer.initialize();
  if (in.tuning && in.tuning->base && (frozen || !has_start || in.tuning->preferences))
    load_params(*in.tuning->base, trainer.params(), trainer.stream(), ParamSource::kMasters,
                frozen ? ParamChoice::kFrozen : ParamChoice::kAll);
}

void take_adapters(const Tuning& tuning, Trainer& trainer) {
  if (tuning.adapters)
    load_params(*tuning.adapters, trainer.params(), trainer.stream(), ParamSource::kValues,
                ParamChoice::kTrained);
  trainer.optimizer().take_values(trainer.stream());
}

// A run that resumes at another precision must read the masters, or it would lose their extra bits. At the
// same precision reading them gives the same values.
void take_start_values(const StartPoint& start, Trainer& trainer, bool resumed) {
  load_params(*start.tensors, trainer.params(), trainer.stream(),
              resumed ? ParamSource::kMasters : ParamSource::kValues, ParamChoice::kTrained);
  trainer.optimizer().take_values(trainer.stream());
}

// Warns when the run continues with fresh moments, whose effect would otherwise look like a bad step. Fails
// when a checkpoint of ours holds no moments: the user chose not to save them, and must also ask for fresh
// ones.
LrSchedule take_optimizer_state(const StartPoint& start, const CheckpointConfig& config,
                                const LrSchedule& ours, Trainer& trainer) {
  if (start.optimizer_steps)
    load_optimizer(*start.tensors, *start.optimizer_steps, trainer.optimizer(), trainer.stream());
  else if (!start.no_optimizer.empty())
    warn(start.path, ": no optimizer state (", start.no_optimizer, "): continuing with fresh moments");
  else
    fail(ErrorKind::kData, start.path,
         ": holds no optimizer state; give --no-load-optim to continue with fresh moments");
  const LrSchedule schedule = agreed_schedule(ours, start, config);
  LossScale& scale = trainer.loss_scale();
  if (!scale.dynamic()) return schedule;
  if (start.loss_scale.is_null())
    log("no loss scale in ", start.path, ": beginning with ", scale.value());
  else
    scale.take(start.loss_scale);
  return schedule;
}

namespace {
/// The number of samples that the run has consumed after its last step; nothing if no step is left.
std::optional<int64_t> end_of_steps(const TrainConfig& train, const TrainState& state) {
  const int64_t left = train.eval_only ? 0 : *train.iters - state.iteration;
  if (left <= 0) return std::nullopt;
  return state.consumed_train + train.samples_of_steps(left, state.consumed_train);
}

bool has_evaluations(const TrainConfig& train, const DataSets& data) {
  const bool valid = data.valid.size > 0 && (train.eval_iters > 0 || train.full_validation);
  return valid || (data.test.size > 0 && train.eval_iters > 0);
}
}  // namespace

namespace {
/// The examples that the steps of the whole run read, ascending: those of earlier steps, too, so that a
/// resumed run computes the same batches, and the same bits. Empty, which means all: if there are
/// evaluations, which may read others, or so many steps that they pass all examples.
std::vector<int64_t> examples_reached(const RankInput& in, const TrainConfig& train,
                                      const TrainState& state) {
  const std::optional<int64_t> end = end_of_steps(train, state);
  const std::function<int64_t(int64_t)>& example = in.data.train.read.example;
  if (!end || !example || has_evaluations(train, in.data)) return {};
  const int64_t count = in.tuning->preferences->count;
  if (*end >= 2 * count) return {};  // more than an epoch
  std::vector<char> found(static_cast<size_t>(count), 0);
  for (int64_t sample = 0; sample < *end; ++sample) {
    if (const int64_t one = example(sample); one >= 0) found[static_cast<size_t>(one)] = 1;
    if (sample % 4096 == 0) stop_if_asked();
  }
  std::vector<int64_t> reached;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != 0) reached.push_back(static_cast<int64_t>(i));
  return reached;
}
}  // namespace

// Called before the adapters are read. Until then they add nothing, because their matrix B is zero.
void learn_preferences(const RankInput& in, const PretrainConfig& config, const TrainState& state,
                       Trainer& trainer) {
  const Tuning::Preferences& preferences = *in.tuning->preferences;
  const Preference::LossesOf losses_of = [&trainer](const SampleSource& all, int64_t first) {
    stop_if_asked();
    return trainer.sample_losses(all, first);
  };
  trainer.set_judge(Preference(
      preferences.options,
      {preferences.examples, preferences.count, examples_reached(in, config.train, state)}, losses_of));
}

// The levels before the run's start may have been for fewer ranks. An evaluation takes the largest batch,
// even if no step that is left does.
void require_whole_batches(const PretrainConfig& config, const DataSets& data, const TrainState& state) {
  const TrainConfig& train = config.train;
  const std::vector<BatchLevel> levels = train.batch_levels();
  const int64_t step = int64_t{train.micro_batch} * config.parallel.data;
  const std::optional<int64_t> end = end_of_steps(train, state);
  for (size_t i = 0; i < levels.size(); ++i) {
    const auto [from, batch] = levels[i];
    const bool past = i + 1 < levels.size() && levels[i + 1].from <= state.consumed_train;
    const bool taken = !past && end && from < *end;
    const bool evaluated = batch == train.global_batch && has_evaluations(train, data);
    if ((!taken && !evaluated) || batch % step == 0) continue;
    const std::string use = taken ? concat("the batch from ", from, " samples on")
                                  : std::string("the largest batch, which evaluations take");
    fail(ErrorKind::kUsage, "--step-batch-size-schedule: ", batch, ", ", use,
         ", is not a multiple of --micro-batch-size ", train.micro_batch, " * data-parallel size ",
         config.parallel.data, nearest_multiples(batch, step));
  }
}

void require_enough_data(const RankInput& in, const TrainState& state) {
  const TrainConfig& train = in.config.train;
  const DataSet& data = in.data.train;
  const std::optional<int64_t> wanted = end_of_steps(train, state);
  if (!wanted) return;
  if (data.size == 0 && !in.tuning && !in.config.data.has_own_paths())
    fail(ErrorKind::kUsage, "--split ", quote(in.config.data.split),
         " leaves no training data; give --split a larger share for it, the first number");
  if (data.size < *wanted)
    fail(ErrorKind::kUsage, "the run needs ", format_count(*wanted),
         " training samples, but the data sets have ", format_count(data.size),
         "; lower --train-iters, or give --data-path weights so that data is reused");
}

}  // namespace megalith
