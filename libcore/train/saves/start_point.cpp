#include "libcore/train/saves/start_point.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_fields.h"
#include "libcore/json/json_names.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIteration = "iter_";  // prefix of the names of iteration folders

/// A hint for error messages about a damaged checkpoint: lists our other checkpoints below `root`. Empty if
/// there are none.
std::string others_in(const std::string& root) {
  std::vector<std::string> paths;
  for (const std::string& name : iteration_folders_in(root))
    if (const std::string path = concat(root, "/", name); file_exists(path + "/" + kIndexFile))
      paths.push_back(path);
  return paths.empty() ? "" : concat(", give --load one of ", join(paths, ", "));
}

/// Throws kNoInput when a named checkpoint is missing, because starting from scratch would overwrite the run
/// that it belongs to. `path`: the checkpoint's iteration folder, or a folder whose tracker names the
/// checkpoint.
void refuse_missing_checkpoint(const std::string& path) {
  const fs::path folder = fs::path(latest_checkpoint(path).value_or(path)).lexically_normal();
  const std::string root = parent_or_here(folder.string()).string(), tracker = root + "/" + kTrackerFile;
  const bool named =
      file_exists(tracker) && fs::path(latest_checkpoint(root).value_or("")).filename() == folder.filename();
  if (!named && !folder.filename().string().starts_with(kIteration)) return;
  fail(ErrorKind::kNoInput, named ? concat(tracker, ": names ") : "", folder.string(),
       named ? ", which " : ": ",
       file_exists(folder.string()) ? concat("holds no checkpoint (no ", kIndexFile, ")") : "is not there",
       "; restore the folder", others_in(root), ", or give another --load and --save to start over");
}

/// Throws kData for a folder with checkpoints but without a tracker. Megatron recognizes such a folder only
/// by the tracker and would start from scratch.
void refuse_missing_tracker(const std::string& root) {
  const std::vector<std::string> names = iteration_folders_in(root);
  if (!names.empty())
    fail(ErrorKind::kData, root, ": holds ", names.back(), ", but no ", kTrackerFile,
         " to say which is the newest; give --load ", root, "/", names.back(), ", or another folder");
}

/// Returns only if a run with this --load may start from scratch: the folder is empty or missing, or is
/// --save itself. Throws if --save holds another tool's model, because the user may expect the run to load
/// it. kNoInput, kData.
void refuse_what_is_no_checkpoint(const CheckpointConfig& config, const std::string& path, Trained trained) {
  refuse_missing_checkpoint(path);
  refuse_missing_tracker(path);
  if (loads_where_it_saves(config)) {
    if (trained == Trained::kModel && holds_foreign_model(path))
      ModelSource{path};  // throws, saying what `path` is
    return;
  }
  for (const auto& [format, store] : checkpoint_stores()) store->refuse_part(path);
  if (file_exists(path)) {
    if (!fs::is_directory(path) || !fs::is_empty(path)) ModelSource{path};  // throws, saying what `path` is
    return;
  }
  // A path such as "me/hf" is more likely a model id than a new folder if there is no folder "me".
  const bool id = is_hub_id(path) && !file_exists(parent_or_here(path).string());
  if (id) fail(ErrorKind::kNoInput, path, ": there is no such folder", hub_remedy(path));
}

/// Says which checkpoints there are in place of that of --ckpt-step.
[[noreturn]] void refuse_step(const CheckpointConfig& config) {
  std::vector<std::string> steps, numbers;
  for (const std::string& name : iteration_folders_in(config.load))
    if (const auto step = parse_int(name.substr(std::string_view(kIteration).size())))
      steps.push_back(std::to_string(*step));
  for (const auto& [format, store] : checkpoint_stores())
    for (const int64_t number : store->numbers(config.load)) numbers.push_back(std::to_string(number));
  std::string ways;
  if (!steps.empty()) ways += concat("; there are those of ", join(steps, ", "), ": give one of them");
  if (!numbers.empty())
    ways += concat("; give --save ", config.load, " --checkpoint N, with N ", join(numbers, " or "));
  fail(ErrorKind::kUsage, "--ckpt-step ", *config.step, ": --load ", config.load,
       " holds no checkpoint of this step (", iteration_folder(*config.step), ')', ways,
       ", or leave it out to load the newest");
}

const char* fresh_values(Trained trained) {
  return trained == Trained::kTuned ? "the model that is tuned" : "random values";
}

[[noreturn]] void refuse_missing(const CheckpointConfig& config, Trained trained) {
  const std::string& by = config.load_named_by;
  if (by.empty())
    fail(ErrorKind::kNoInput, config.load,
         ": holds no checkpoint, and --exit-on-missing-checkpoint is given");
  fail(ErrorKind::kNoInput, by, ": ", config.load,
       fs::exists(config.load) ? " holds" : " is not there: it names",
       " no checkpoint; give the folder of one on this machine",
       trained == Trained::kModel ? " (ours, Megatron-LM's or Hugging Face's)" : "",
       ", or leave it out to begin with ", fresh_values(trained));
}

}  // namespace

std::vector<std::string> iteration_folders_in(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error))
    if (std::string name = entry.path().filename().string(); name.starts_with(kIteration))
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

bool loads_where_it_saves(const CheckpointConfig& config) {
  const auto normal = [](const std::string& path) {
    std::error_code error;
    return fs::weakly_canonical(path, error);
  };
  return !config.save.empty() && normal(config.save) == normal(config.load);
}

void take_step(CheckpointConfig& config) {
  if (!config.step || config.load.empty()) return;
  const std::string path = concat(config.load, "/", iteration_folder(*config.step));
  if (!file_exists(path)) refuse_step(config);
  config.load = path;
}

void take_state(StartPoint& start, const Json& state, const std::string& where) {
  const JsonNames names(state, where);
  start.state = read_fields<TrainState>(state);
  check_state(*start.state, where);
  start.schedule = LrSchedule::from_json(state["scheduler"], where);
  if (const Json* steps = state.find("optimizer_steps")) {
    start.optimizer_steps = steps->as_int();
    check_count(*start.optimizer_steps, JsonNames::of(*steps));
  }
  if (const Json* scale = state.find("loss_scale")) start.loss_scale = *scale;
}

std::string load_path(const CheckpointConfig& config) {
  if (!loads_where_it_saves(config)) return path_or_snapshot(config.load);
  const auto first = store_of(config.format).untracked(config);
  return first ? config.load + "/" + iteration_folder(*first) : config.load;
}

std::optional<StartPoint> find_start(const CheckpointConfig& config, const ModelConfig& model,
                                     Trained trained) {
  if (const auto found = find_checkpoint(config)) return found->start(config, model, trained);
  if (config.load.empty()) return std::nullopt;
  const std::string path = load_path(config);
  if (config.exit_on_missing && !config.load_named_by.empty() && trained == Trained::kModel)
    refuse_missing(config, trained);
  refuse_what_is_no_checkpoint(config, path, trained);
  if (config.exit_on_missing) refuse_missing(config, trained);
  if (!loads_where_it_saves(config) && !file_exists(path) && is_hub_id(path))
    warn(path, ": there is no such folder", hub_remedy(path));
  log("no checkpoint in ", printable(config.load), ": starting from ", fresh_values(trained));
  return std::nullopt;
}

std::string OptionsToResume::text() const {
  return concat(join(words, " "), in_place_of.empty() ? "" : " in place of ", in_place_of);
}

OptionsToResume options_to_resume(const CheckpointConfig& config, int64_t iteration) {
  const std::string resume = "--resume-from-checkpoint";
  OptionsToResume options;
  if (config.step) return {{"--load", config.save}, concat("--ckpt-step ", *config.step)};
  if (const auto own = store_of(config.format).options_to_resume(config, iteration))
    options.words = *own;
  else if (config.number)
    return {{"--load", config.save}, concat("--checkpoint ", *config.number)};
  else if (config.load.empty() || !loads_where_it_saves(config))
    options.words = {config.load_named_by == resume ? resume : "--load", config.save};
  if (config.finetune) options.words.push_back("--no-finetune");
  return options;
}

namespace {
/// Converts a schedule from steps of `theirs` samples to this run's.
void count_in_steps(LrSchedule& schedule, int64_t theirs, const TrainConfig& train, int64_t epoch) {
  const int64_t ours = train.global_batch, whole = make_lr_schedule(train).decay_end;
  // An epoch drops its last incomplete batch, so the number of samples in the same epochs depends slightly on
  // the batch size.
  const int64_t epochs = epoch > 0 ? (whole + epoch - 1) / epoch : 0;
  const bool same_epochs =
      schedule.decay_end > epochs * (epoch - theirs) && schedule.decay_end < epochs * (epoch + ours);
  schedule.decay_end = same_epochs ? whole : schedule.decay_end / theirs * ours;
  schedule.warmup = schedule.warmup / static_cast<double>(theirs) * static_cast<double>(ours);
  schedule.wsd = schedule.wsd / theirs * ours;
}
}  // namespace

void count_in_steps(StartPoint& start, const TrainConfig& train, int64_t epoch) {
  const int64_t theirs = start.step_samples, ours = train.global_batch;
  if (theirs <= 0 || theirs == ours || !start.state) return;
  if (start.schedule) count_in_steps(*start.schedule, theirs, train, epoch);
  TrainState& state = *start.state;
  state.schedule_samples = state.schedule_samples / theirs * ours;
  state.consumed_train = state.consumed_train / theirs * ours;
  log(printable(start.path), ": ",
      start.schedule ? concat("its steps have ", theirs, " samples, this run's ", ours)
                     : concat("it does not say how many samples a step has; this run's steps have ", ours),
      ": the run continues after ", state.iteration, " of its own steps, at sample ", state.consumed_train,
      " of its order");
}

LrSchedule agreed_schedule(const LrSchedule& ours, const StartPoint& start, const CheckpointConfig& config) {
  if (!start.schedule || config.override_scheduler) return ours;
  LrSchedule theirs = *start.schedule;
  if (theirs.wsd == 0) {  // Megatron's checkpoints do not say
    theirs.wsd = ours.wsd;
    theirs.wsd_decay = ours.wsd_decay;
  }
  if (config.use_checkpoint_scheduler) {
    if (theirs.decay == LrDecay::kWsd && theirs.wsd == 0)
      fail(ErrorKind::kUsage, start.path,
           ": the checkpoint's schedule is --lr-decay-style WSD, but it does not say how long the annealing "
           "phase is; give --lr-decay-style WSD with --lr-wsd-decay-iters N, or --lr-wsd-decay-samples N");
    return theirs;
  }
  std::string list;
  const auto compare = [&](const char* what, const auto& a, const auto& b) {
    if (a != b) list += concat("\n  ", what, ": checkpoint ", a, ", command line ", b);
  };
  compare("--lr", theirs.max, ours.max);
  compare("--min-lr", theirs.min, ours.min);
  compare("--lr-warmup-init", theirs.first, ours.first);
  compare("--lr-decay-style", std::string(enum_name(theirs.decay)), std::string(enum_name(ours.decay)));
  compare("--lr-warmup-iters, in samples", theirs.warmup, ours.warmup);
  if (ours.decay != LrDecay::kConstant)  // a constant rate has no end, so that a run can be made longer
    compare("--lr-decay-iters, in samples", theirs.decay_end, ours.decay_end);
  compare("--lr-wsd-decay-iters, in samples", theirs.wsd, ours.wsd);
  if (ours.decay == LrDecay::kWsd)
    compare("--lr-wsd-decay-style", std::string(enum_name(theirs.wsd_decay)),
            std::string(enum_name(ours.wsd_decay)));
  if (!list.empty())
    fail(ErrorKind::kUsage, start.path,
         ": the checkpoint has another learning rate schedule; give --override-opt_param-scheduler to "
         "take the command line's, or --use-checkpoint-opt_param-scheduler to keep the checkpoint's:",
         list);
  return ours;
}

std::optional<SavedArgs> saved_args(const CheckpointConfig& config) {
  if (const auto found = find_checkpoint(config)) return found->args();
  if (!config.load.empty()) refuse_what_is_no_checkpoint(config, load_path(config), Trained::kModel);
  return std::nullopt;
}

std::optional<TokenizerFiles> tokenizer_of_start(const CheckpointConfig& config, const TokenizerConfig& run) {
  const auto found = config.number ? nullptr : find_checkpoint(config);
  const auto source = found ? found->model() : nullptr;
  if (!source) return std::nullopt;
  const TokenizerFiles& own = source->tokenizer();
  if (own.type.empty() || own.type == "NullTokenizer") return std::nullopt;
  TokenizerConfig settings = run;
  if (source->args().is_object())
    from_json(settings, source->args(), source->path() + "/" + kArgsFile);
  else if (!own.eod.empty())
    settings.eod = own.eod;
  return take_tokenizer(own, settings);
}

}  // namespace megalith
