#include "libcore/train/saves/torch_checkpoint.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/megatron.h"

namespace megalith {
namespace {

MegatronLayout layout_of(const ParallelConfig& parallel) {
  return {.tensor = parallel.tensor, .pipeline = parallel.pipeline};
}

// The whole run's, however long the decay, because Megatron counts so (training/training.py:
// get_optimizer_param_scheduler).
int64_t all_samples(const TrainConfig& train) {
  return train.samples ? *train.samples : train.iters.value_or(0) * train.global_batch;
}

MegatronRun run_of(const TrainState& state, Trainer& trainer, const CheckpointExtras& extras) {
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
  if (trainer.loss_scale().dynamic()) run.loss_scale = trainer.loss_scale().to_json();
  return run;
}

}  // namespace

std::string no_torch_checkpoint(const ModelConfig& model, const ParallelConfig& parallel) {
  if (!parallel.pipeline_layers.empty() || parallel.first_layers || parallel.last_layers)
    return "its pipeline ranks hold equally many layers; leave out --pipeline-layers and "
           "--decoder-first-pipeline-num-layers, or save in our format";
  try {
    family_of(model);
  } catch (const Error& unreadable) {
    return concat("no run could be loaded from it: ", unreadable.what(), "; save in our format");
  }
  return no_megatron_layout(model, layout_of(parallel));
}

std::string save_torch_checkpoint(const std::string& root, const TrainState& state, Trainer& trainer,
                                  const CheckpointExtras& extras) {
  std::string path = concat(root, "/", iteration_folder(state.iteration));
  save_through_ours(
      passage_of(root, CheckpointFormat::kTorch), state, trainer, extras, [&](const std::string& ours) {
        const ModelSource source(ours);
        export_megatron_run({.source = source, .tokenizer_folder = source.tokenizer_folder()}, root,
                            layout_of(trainer.shape().parallel), run_of(state, trainer, extras));
      });
  return path;
}

}  // namespace megalith
