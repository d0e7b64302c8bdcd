// Megatron's format "torch": first ROOT/iter_NNNNNNN/mp_rank_XX[_YYY]/model_optim_rng.pt, one file per rank
// of the model, each with the optimizer state of all data-parallel ranks; then ROOT/tokenizer; then the
// tracker. The ranks write a checkpoint in our format to ROOT/.torch, which the first rank converts, so there
// must be space for both. The store also reads other programs' checkpoints and Hugging Face folders, because
// one reader (ModelSource) handles them all.
#include <filesystem>
#include <system_error>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/megatron.h"
#include "libcore/io/files/file.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

MegatronLayout layout_of(const ParallelConfig& parallel) {
  return {.tensor = parallel.tensor, .pipeline = parallel.pipeline};
}

// The samples of the whole run, even if the decay ends earlier. Megatron stores this number
// (training/training.py: get_optimizer_param_scheduler).
int64_t all_samples(const TrainConfig& train) {
  return train.samples ? *train.samples : train.iters.value_or(0) * train.global_batch;
}

MegatronRun run_of(const SaveRequest& save) {
  const TrainState& state = save.state;
  Trainer& trainer = save.trainer;
  const CheckpointExtras& extras = save.extras;
  const TrainConfig& train = trainer.shape().train;
  const int64_t batch = train.global_batch;
  MegatronRun run{.iteration = state.iteration, .options = extras.args.as_object()};
  run.progress = {{"iteration", state.iteration},
                  {"consumed_train_samples", state.consumed_train},
                  {"consumed_valid_samples", state.consumed_valid},
                  {"skipped_train_samples", state.consumed_train - state.schedule_samples},
                  {"skipped_iterations", state.skipped},
                  {"global_batch_size", batch},
                  {"data_parallel_size", trainer.shape().parallel.data},
                  {"world_size", trainer.shape().parallel.world}};
  if (!extras.optimizer) return run;
  run.scheduler = extras.schedule.to_json().as_object();
  const double decay = train.weight_decay;
  for (const auto& [name, value] : Json::Object{{"num_steps", state.schedule_samples},
                                                {"start_wd", decay},
                                                {"end_wd", decay},
                                                {"wd_incr_style", "constant"},
                                                {"wd_incr_steps", all_samples(train)}})
    run.scheduler.emplace_back(name, value);
  run.adam = {{"lr", extras.schedule.at(state.schedule_samples)},
              {"max_lr", train.lr},
              {"min_lr", train.min_lr},
              {"betas", Json::Array{train.beta1, train.beta2}},
              {"eps", train.adam_eps},
              {"bias_correction", true},
              {"step", trainer.optimizer().steps()}};
  run.weight_decay = decay;
  run.decay_all = train.decay_all;
  if (trainer.loss_scale().dynamic()) run.loss_scale = trainer.loss_scale().to_json();
  return run;
}

/// Copies those settings from `ours` that have no effect, so that two configurations of the same model
/// compare equal.
ModelConfig said_as(ModelConfig theirs, const ModelConfig& ours) {
  theirs.use_rotary = ours.use_rotary;
  if (theirs.activation() == ours.activation()) {
    theirs.openai_gelu = ours.openai_gelu;
    theirs.bias_gelu_fusion = ours.bias_gelu_fusion;
    theirs.squared_relu = ours.squared_relu;
    theirs.hidden_act = ours.hidden_act;
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

/// The progress of training according to Megatron's args and scheduler. Error messages begin with `where`.
TrainState megatron_progress(int64_t iteration, const SourceTraining& training, const std::string& where) {
  const Json& args = training.args;
  const auto whole = [&](const Json& from, const char* key, int64_t otherwise) {
    const Json* value = from.find(key);
    if (!value || value->is_null()) return otherwise;
    if (!value->is_int())
      fail(ErrorKind::kData, where, ": ", quote(key), " is ", value->dump(), ", wanted a count");
    check_count(value->as_int(), concat(where, ": ", quote(key)));
    return value->as_int();
  };
  const int64_t batch = whole(args, "global_batch_size", 0);
  TrainState state{.iteration = iteration};
  const bool countable = batch == 0 || iteration <= kMostSamples / batch;
  state.consumed_train = whole(args, "consumed_train_samples", countable ? iteration * batch : kMostSamples);
  state.consumed_valid = whole(args, "consumed_valid_samples", 0);
  const int64_t skipped = whole(args, "skipped_train_samples", 0);
  state.schedule_samples = state.consumed_train - skipped;
  if (training.scheduler.is_object())
    state.schedule_samples = whole(training.scheduler, "num_steps", state.schedule_samples);
  state.skipped = whole(args, "skipped_iterations", batch > 0 ? skipped / batch : 0);
  return state;
}

class FoundForeign final : public FoundCheckpoint {
 public:
  explicit FoundForeign(std::string path) : path_(std::move(path)) {}

  StartPoint start(const CheckpointConfig& config, const ModelConfig& model, Trained) const override {
    const auto source = std::make_shared<const ModelSource>(
        path_, SourceOptions{.vocab_size = model.vocab_size, .optimizer = true});
    const SourceTraining& training = source->training();
    StartPoint start{.path = source->path(), .tensors = {source, &source->tensors()}};
    start.args = to_json(said_as(source->config(), model));
    start.args_place = concat(start.path, ": args");
    const bool trained = training.args.is_object() && source->iteration() > 0;
    if (!trained) return start;
    for (const char* key : {"data_path", "split", "seed", "seq_length"})
      if (const Json* value = training.args.find(key); value && !value->is_null())
        start.args.set(key, *value);
    start.state = megatron_progress(source->iteration(), training, start.path);
    check_state(*start.state, start.path);
    if (training.scheduler.is_object() && !config.finetune && config.load_optim && !config.override_scheduler)
      start.schedule = LrSchedule::from_json(training.scheduler, concat(start.path, ": opt_param_scheduler"));
    start.optimizer_steps = training.optimizer_steps;
    start.no_optimizer = training.no_optimizer;
    start.loss_scale = training.loss_scale;
    return start;
  }

  std::optional<SavedArgs> args() const override {
    const ModelSource source(path_, {.padded = true});
    ModelConfig model = source.config();
    model.vocab_size = 0;  // the tokenizer sets the size
    const std::string& tokenizer = source.tokenizer_folder().path;
    Json args = to_json(model);
    if (!source.tokenizer().eod.empty()) args.set("eod_token", source.tokenizer().eod);
    return SavedArgs{.args = std::move(args),
                     .folder = source.path(),
                     .tokenizer = tokenizer.empty() ? source.path() : tokenizer};
  }

  std::unique_ptr<ModelSource> model() const override {
    return std::make_unique<ModelSource>(path_, SourceOptions{.padded = true});
  }

 private:
  std::string path_;
};

class TorchStore final : public CheckpointStore {
 public:
  std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace& place) const override {
    const auto latest = latest_checkpoint(place.path);
    const std::string folder = latest.value_or(place.path);
    const bool megatron = file_exists(folder) && is_megatron(folder);
    const bool hugging_face = !latest && file_exists(place.path + "/config.json");
    if (place.number || (!megatron && !hugging_face)) return nullptr;
    return std::make_unique<FoundForeign>(place.path);
  }

  SavePlan save(const SaveRequest& save) const override {
    return {.root = passage(save.root),
            .path = concat(save.root, "/", iteration_folder(save.state.iteration)),
            .make = [&save](const std::string& ours) {
              const ModelSource source(ours);
              export_megatron_run({.source = source, .tokenizer_folder = source.tokenizer_folder()},
                                  save.root, layout_of(save.trainer.shape().parallel), run_of(save));
            }};
  }

  std::string refusal(const ModelConfig& model, const ParallelConfig& parallel) const override {
    if (!parallel.pipeline_layers.empty() || parallel.first_layers || parallel.last_layers)
      return "its pipeline ranks must hold equally many layers; leave out --pipeline-layers and "
             "--decoder-first-pipeline-num-layers, or save in our format";
    try {
      family_of(model);
    } catch (const Error& unreadable) {
      return concat("no run could load it: ", unreadable.what(), "; save in our format");
    }
    return no_megatron_layout(model, layout_of(parallel));
  }

  void enter(const CheckpointConfig& config) const override {
    if (const auto first = untracked(config))
      write_file(config.save + "/" + kTrackerFile, std::to_string(*first));
    std::error_code ignored;  // the next save reports the problem
    std::filesystem::remove_all(passage(config.save), ignored);
  }

  // The only checkpoint of a run whose first save was killed before it wrote the tracker. The checkpoint is
  // complete, because its folder appears by a rename after all files are written.
  std::optional<int64_t> untracked(const CheckpointConfig& config) const override {
    const std::string& root = config.save;
    if (!loads_where_it_saves(config) || file_exists(root + "/" + kTrackerFile)) return std::nullopt;
    const std::vector<std::string> names = iteration_folders_in(root);
    if (names.size() != 1 || !is_megatron(root + "/" + names[0])) return std::nullopt;
    const auto iteration = parse_int(std::string_view(names[0]).substr(names[0].find('_') + 1));
    return iteration && names[0] == iteration_folder(*iteration) ? iteration : std::nullopt;
  }

 private:
  static std::string passage(const std::string& save) { return save + "/.torch"; }
};

[[maybe_unused]] const bool kAdded =
    add_checkpoint_store(add_checkpoint_format(1, "torch", {}), std::make_unique<TorchStore>());
/// The format "fsdp_dtensor" shards each tensor over the ranks. It has no store; it is registered only so
/// that options that name it can be refused.
[[maybe_unused]] const CheckpointFormat kFsdp =
    add_checkpoint_format(4, "fsdp_dtensor", {.refusal = "parameters are not sharded so; give torch_dist"});

}  // namespace
}  // namespace megalith
