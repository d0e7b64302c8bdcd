#include "libcore/train/start_point.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/train/pth_checkpoint.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIteration = "iter_";  // what the names of an iteration's folder begin with

/// Who wrote a checkpoint.
enum class Writer { kNobody, kUs, kMegatron, kHuggingFace };

Writer writer_of(const std::string& path) {
  const auto latest = latest_checkpoint(path);
  const std::string folder = latest.value_or(path);
  if (file_exists(folder + "/" + kIndexFile)) return Writer::kUs;
  if (file_exists(folder) && is_megatron(folder)) return Writer::kMegatron;
  if (latest) return Writer::kNobody;
  return file_exists(path + "/config.json") ? Writer::kHuggingFace : Writer::kNobody;
}

/// What stands in `root` under the name of an iteration's folder ("iter_0000100"), in order.
std::vector<std::string> iterations_in(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error))
    if (std::string name = entry.path().filename().string(); name.starts_with(kIteration))
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

/// The checkpoints of ours below `root`: what to give in place of one that is damaged.
std::string others_in(const std::string& root) {
  std::vector<std::string> paths;
  for (const std::string& name : iterations_in(root))
    if (const std::string path = root + "/" + name; file_exists(path + "/" + kIndexFile))
      paths.push_back(path);
  return paths.empty() ? "" : concat(", give --load one of ", join(paths, ", "));
}

/// A checkpoint that the tracker names, or the user by its own folder, is meant: beginning anew would write
/// over the run that it belongs to. `path` may be the folder of the tracker, or the one that the first rank
/// found there.
void refuse_missing_checkpoint(const std::string& path) {
  const fs::path folder = fs::path(latest_checkpoint(path).value_or(path)).lexically_normal();
  const std::string root = parent_or_here(folder.string()).string(), tracker = root + "/" + kTrackerFile;
  const bool named =
      file_exists(tracker) && fs::path(latest_checkpoint(root).value_or("")).filename() == folder.filename();
  if (!named && !folder.filename().string().starts_with(kIteration)) return;
  fail(ErrorKind::kNoInput, named ? concat(tracker, ": names ") : "", folder.string(),
       named ? ", which " : ": ",
       file_exists(folder.string()) ? concat("holds no checkpoint (no ", kIndexFile, ")") : "is not there",
       "; restore the folder", others_in(root), ", or give another --load and --save to begin anew");
}

/// Megatron names a folder of checkpoints by its tracker alone; without one it would begin anew.
void refuse_missing_tracker(const std::string& root) {
  const std::vector<std::string> names = iterations_in(root);
  if (!names.empty())
    fail(ErrorKind::kData, root, ": holds ", names.back(), ", but no ", kTrackerFile,
         " that says which is the newest; give --load ", root, "/", names.back(), ", or another folder");
}

/// Where a run keeps its own checkpoints there need not be one yet, whatever else the folder holds.
bool is_own_folder(const CheckpointConfig& config) {
  const auto normal = [](const std::string& path) {
    std::error_code error;
    return fs::weakly_canonical(path, error);
  };
  return !config.save.empty() && normal(config.save) == normal(config.load);
}

/// The pairs that the PyTorch DDP tutorial keeps in one folder are all one run's: one of its files is none.
void refuse_pth_file(const std::string& path) {
  const std::string folder = parent_or_here(path).string();
  if (path.ends_with(".pth") && newest_pth(folder))
    fail(ErrorKind::kData, path, ": is one file of a checkpoint; give its folder, ", folder,
         ", or to choose among its steps --save ", folder, " --checkpoint N");
}

/// Returns when --load may begin afresh: an empty or missing folder, or --save itself, unless a model of
/// another tool lies there that one may think is loaded. kNoInput, kData.
void refuse_what_is_no_checkpoint(const CheckpointConfig& config, const std::string& path, Trained trained) {
  refuse_missing_checkpoint(path);
  refuse_missing_tracker(path);
  if (is_own_folder(config)) {
    if (trained == Trained::kModel && holds_foreign_model(path)) ModelSource{path};  // which says what it is
    return;
  }
  refuse_pth_file(path);
  if (file_exists(path)) {
    if (!fs::is_directory(path) || !fs::is_empty(path)) ModelSource{path};  // which says what it is
    return;
  }
  // "me/hf" in no folder "me" is rather a model's id than a new folder.
  const bool id = is_hub_id(path) && !file_exists(parent_or_here(path).string());
  if (id) fail(ErrorKind::kNoInput, path, ": there is no such folder", hub_remedy(path));
}

[[noreturn]] void refuse_missing(const CheckpointConfig& config) {
  const std::string& by = config.load_named_by;
  if (by.empty())
    fail(ErrorKind::kNoInput, config.load,
         ": holds no checkpoint, and --exit-on-missing-checkpoint is given");
  fail(ErrorKind::kNoInput, by, ": ", config.load,
       fs::exists(config.load) ? " holds" : " is not there: it names",
       " no checkpoint; give the folder of one on this machine (ours, Megatron-LM's or Hugging Face's), or "
       "leave it out to begin with random values");
}

StartPoint from_ours(const std::string& path, Trained trained) {
  auto reader = std::make_shared<const CheckpointReader>(path);
  StartPoint start{.path = reader->path(), .tensors = reader};
  if (reader->has_file(kArgsFile)) start.args = reader->json(kArgsFile);
  if (trained == Trained::kModel && start.args.is_object()) refuse_adapter_alone(start.args, start.path);
  if (reader->iteration() == kRelease) return start;
  const Json state = reader->json(kStateFile);
  start.state = TrainState::from_json(state);
  start.schedule = LrSchedule::from_json(state["scheduler"], concat(start.path, "/", kStateFile));
  if (const Json* steps = state.find("optimizer_steps")) start.optimizer_steps = steps->as_int();
  if (const Json* scale = state.find("loss_scale")) start.loss_scale = *scale;
  if (reader->has_file(kLossesFile)) start.losses = LossHistory::from_json(reader->json(kLossesFile));
  return start;
}

/// Takes over `ours` where it does not count, so that two descriptions of one function compare equal.
ModelConfig said_as(ModelConfig theirs, const ModelConfig& ours) {
  theirs.use_rotary = ours.use_rotary;
  if (theirs.activation() == ours.activation()) {
    theirs.openai_gelu = ours.openai_gelu;
    theirs.bias_gelu_fusion = ours.bias_gelu_fusion;
  }
  if (theirs.kv_heads() == ours.kv_heads()) {
    theirs.group_query = ours.group_query;
    theirs.query_groups = ours.query_groups;
  }
  if (theirs.position != PositionEmbedding::kRope && theirs.position == ours.position) {
    theirs.rotary_base = ours.rotary_base;
    theirs.rotary_percent = ours.rotary_percent;
    theirs.rotary_interpolation = ours.rotary_interpolation;
    theirs.rope_scaling = ours.rope_scaling;
    theirs.rope_factor = ours.rope_factor;
  }
  return theirs;
}

int64_t whole(const Json& args, const char* key, int64_t otherwise) {
  const Json* value = args.find(key);
  return value && value->is_int() ? value->as_int() : otherwise;
}

/// Where Megatron's args and scheduler say that training stood.
TrainState megatron_progress(int64_t iteration, const SourceTraining& training) {
  const Json& args = training.args;
  const int64_t batch = whole(args, "global_batch_size", 0);
  TrainState state{.iteration = iteration};
  state.consumed_train = whole(args, "consumed_train_samples", iteration * batch);
  state.consumed_valid = whole(args, "consumed_valid_samples", 0);
  const int64_t skipped = whole(args, "skipped_train_samples", 0);
  state.schedule_samples = state.consumed_train - skipped;
  if (training.scheduler.is_object())
    state.schedule_samples = whole(training.scheduler, "num_steps", state.schedule_samples);
  state.skipped = whole(args, "skipped_iterations", batch > 0 ? skipped / batch : 0);
  return state;
}

StartPoint from_others(const CheckpointConfig& config, const std::string& path, const ModelConfig& model) {
  const auto source = std::make_shared<const ModelSource>(
      path, SourceOptions{.vocab_size = model.vocab_size, .optimizer = true});
  const SourceTraining& training = source->training();
  StartPoint start{.path = source->path(), .tensors = {source, &source->tensors()}};
  start.args = to_json(said_as(source->config(), model));
  const bool trained = training.args.is_object() && source->iteration() > 0;
  if (!trained) return start;
  for (const char* key : {"data_path", "split", "seed", "seq_length"})
    if (const Json* value = training.args.find(key); value && !value->is_null()) start.args.set(key, *value);
  start.state = megatron_progress(source->iteration(), training);
  if (training.scheduler.is_object() && !config.finetune && config.load_optim && !config.override_scheduler)
    start.schedule = LrSchedule::from_json(training.scheduler, concat(start.path, ": opt_param_scheduler"));
  start.optimizer_steps = training.optimizer_steps;
  start.no_optimizer = training.no_optimizer;
  start.loss_scale = training.loss_scale;
  return start;
}

}  // namespace

std::optional<int64_t> first_torch_iteration(const CheckpointConfig& config) {
  const std::string& root = config.save;
  const bool own = config.format == CheckpointFormat::kTorch && is_own_folder(config);
  if (!own || file_exists(root + "/" + kTrackerFile)) return std::nullopt;
  const std::vector<std::string> names = iterations_in(root);
  if (names.size() != 1 || !is_megatron(root + "/" + names[0])) return std::nullopt;
  const auto iteration = parse_int(std::string_view(names[0]).substr(std::string_view(kIteration).size()));
  return iteration && names[0] == iteration_folder(*iteration) ? iteration : std::nullopt;
}

std::string load_path(const CheckpointConfig& config) {
  if (!is_own_folder(config)) return path_or_snapshot(config.load);
  const auto first = first_torch_iteration(config);
  return first ? config.load + "/" + iteration_folder(*first) : config.load;
}

std::optional<StartPoint> find_start(const CheckpointConfig& config, const ModelConfig& model,
                                     Trained trained) {
  if (config.number) return pth_start(config.save, *config.number);
  if (config.load.empty()) return std::nullopt;
  const std::string path = load_path(config);
  const Writer writer = writer_of(path);
  if (writer == Writer::kUs) return from_ours(path, trained);
  if (writer != Writer::kNobody) return from_others(config, path, model);
  if (const auto number = newest_pth(path)) return pth_start(path, *number);
  if (config.exit_on_missing && !config.load_named_by.empty()) refuse_missing(config);
  refuse_what_is_no_checkpoint(config, path, trained);
  if (config.exit_on_missing) refuse_missing(config);
  if (!is_own_folder(config) && !file_exists(path) && is_hub_id(path))
    warn(path, ": there is no such folder", hub_remedy(path));
  log("no checkpoint in ", config.load, ": starting from ",
      trained == Trained::kTuned ? "the model that is tuned" : "random values");
  return std::nullopt;
}

std::string options_to_go_on(const CheckpointConfig& config, int64_t iteration) {
  const std::string state = config.finetune ? "--no-finetune" : "";
  const std::string and_state = state.empty() ? "" : " " + state;
  if (config.format == CheckpointFormat::kPth && (config.number || config.load.empty()))
    return concat("--checkpoint ", iteration - 1, and_state);
  if (config.number) return concat("--load ", config.save, " in place of --checkpoint ", *config.number);
  if (!config.load.empty() && is_own_folder(config)) return state;
  const std::string resume = "--resume-from-checkpoint";
  return concat(config.load_named_by == resume ? resume : "--load", ' ', config.save, and_state);
}

LrSchedule agreed_schedule(const LrSchedule& ours, const StartPoint& start, const CheckpointConfig& config) {
  if (!start.schedule || config.override_scheduler) return ours;
  const LrSchedule& theirs = *start.schedule;
  if (config.use_checkpoint_scheduler) return theirs;
  std::string list;
  const auto compare = [&](const char* what, const auto& a, const auto& b) {
    if (a != b) list += concat("\n  ", what, ": checkpoint ", a, ", command line ", b);
  };
  compare("--lr", theirs.max, ours.max);
  compare("--min-lr", theirs.min, ours.min);
  compare("--lr-warmup-init", theirs.first, ours.first);
  compare("--lr-decay-style", std::string(enum_name(theirs.decay)), std::string(enum_name(ours.decay)));
  compare("--lr-warmup-iters, in samples", theirs.warmup, ours.warmup);
  compare("--lr-decay-iters, in samples", theirs.decay_end, ours.decay_end);
  if (!list.empty())
    fail(ErrorKind::kUsage, start.path,
         ": the checkpoint's learning rate schedule is another one; give --override-opt_param-scheduler to "
         "take the command line's, or --use-checkpoint-opt_param-scheduler to keep the checkpoint's:",
         list);
  return ours;
}

std::optional<SavedArgs> saved_args(const CheckpointConfig& config) {
  const std::string root = config.number ? config.save : load_path(config);
  if (root.empty()) return std::nullopt;
  const Writer writer = config.number ? Writer::kNobody : writer_of(root);
  if (writer == Writer::kNobody) {
    const auto number = config.number ? config.number : newest_pth(root);
    if (!number) {
      refuse_what_is_no_checkpoint(config, root, Trained::kModel);
      return std::nullopt;
    }
    Json args = pth_start(root, *number).args;
    if (!args.is_object()) return std::nullopt;  // a model file alone
    return SavedArgs{.args = std::move(args), .folder = root, .tokenizer = root};
  }
  if (writer == Writer::kUs) {
    const CheckpointReader reader(root);
    return SavedArgs{.args = reader.json(kArgsFile), .folder = reader.path(), .tokenizer = reader.path()};
  }
  const ModelSource source(root, {.padded = true});
  ModelConfig model = source.config();
  model.vocab_size = 0;  // the tokenizer's
  const std::string& tokenizer = source.tokenizer_folder();
  Json args = to_json(model);
  if (!source.tokenizer().eod.empty()) args.set("eod_token", source.tokenizer().eod);
  return SavedArgs{.args = std::move(args),
                   .folder = source.path(),
                   .tokenizer = tokenizer.empty() ? source.path() : tokenizer};
}

std::optional<TokenizerFiles> tokenizer_of_start(const CheckpointConfig& config, const TokenizerConfig& run) {
  if (config.load.empty() || config.number) return std::nullopt;
  const std::string path = load_path(config);
  const Writer writer = writer_of(path);
  if (writer == Writer::kNobody) return std::nullopt;
  if (writer == Writer::kUs && !CheckpointReader(path).has_file(kArgsFile)) return std::nullopt;
  const ModelSource source(path, {.padded = true});
  const TokenizerFiles& own = source.tokenizer();
  if (own.type.empty() || own.type == "NullTokenizer") return std::nullopt;
  TokenizerConfig settings = run;
  if (writer == Writer::kUs)
    from_json(settings, source.args(), source.path() + "/" + kArgsFile);
  else if (!own.eod.empty())
    settings.eod = own.eod;
  return take_tokenizer(own, settings);
}

}  // namespace megalith
