#include "libcore/train/start_point.h"

#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/file.h"
#include "libcore/train/pth_checkpoint.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Who wrote a checkpoint.
enum class Writer { kNobody, kUs, kMegatron, kHuggingFace };

Writer writer_of(const std::string& path) {
  const auto latest = latest_checkpoint(path);
  const std::string folder = latest.value_or(path);
  if (file_exists(folder + "/" + kIndexFile)) return Writer::kUs;
  if (file_exists(folder) && is_megatron(folder)) return Writer::kMegatron;
  if (latest) return Writer::kUs;  // whose reader says what is wrong with it
  return file_exists(path + "/config.json") ? Writer::kHuggingFace : Writer::kNobody;
}

/// Megatron names a folder of checkpoints by its tracker alone; without one it would begin anew.
void refuse_missing_tracker(const std::string& root) {
  if (!fs::is_directory(root)) return;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("iter_"))
      fail(ErrorKind::kData, root, ": holds ", name, ", but no ", kTrackerFile,
           " that says which is the newest; give --load ", root, "/", name, ", or another folder");
  }
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

StartPoint from_ours(const std::string& path) {
  auto reader = std::make_shared<const CheckpointReader>(path);
  StartPoint start{.path = reader->path(), .tensors = reader};
  if (reader->has_file(kArgsFile)) start.args = reader->json(kArgsFile);
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

StartPoint from_others(const CheckpointConfig& config, const ModelConfig& model) {
  const std::string& path = config.load;
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

std::optional<StartPoint> find_start(const CheckpointConfig& config, const ModelConfig& model,
                                     const char* fresh) {
  if (config.number) return pth_start(config.save, *config.number);
  if (config.load.empty()) return std::nullopt;
  const Writer writer = writer_of(config.load);
  if (writer == Writer::kUs) return from_ours(config.load);
  if (writer == Writer::kNobody)
    if (const auto number = newest_pth(config.load)) return pth_start(config.load, *number);
  if (writer != Writer::kNobody) return from_others(config, model);
  refuse_missing_tracker(config.load);
  if (config.exit_on_missing) refuse_missing(config);
  log("no checkpoint in ", config.load, ": starting from ", fresh);
  return std::nullopt;
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
  const std::string& root = config.number ? config.save : config.load;
  if (root.empty()) return std::nullopt;
  const Writer writer = config.number ? Writer::kNobody : writer_of(root);
  if (writer == Writer::kNobody) {
    const auto number = config.number ? config.number : newest_pth(root);
    if (!number) return std::nullopt;
    Json args = pth_start(root, *number).args;
    if (!args.is_object()) return std::nullopt;  // a model file alone
    return SavedArgs{.args = std::move(args), .folder = root};
  }
  if (writer == Writer::kUs) {
    const CheckpointReader reader(root);
    return SavedArgs{.args = reader.json(kArgsFile), .folder = reader.path()};
  }
  const ModelSource source(root, {.padded = true});
  ModelConfig model = source.config();
  model.vocab_size = 0;  // the tokenizer's
  return SavedArgs{.args = to_json(model), .folder = source.path()};
}

}  // namespace megalith
