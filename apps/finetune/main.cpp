#include "apps/app.h"
#include "apps/training_app.h"
#include "libcore/base/log.h"
#include "libcore/dialects/axolotl/axolotl.h"
#include "libcore/dialects/llama_factory/factory_names.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/dialects/megatron/wandb.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/finetune/finetune.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

void add_notes(Options& options) {
  options
      .epilog(std::string("megalith-finetune --model gpt2 --data records --lora --output-dir adapter\n"
                          "megalith-finetune --model gpt2 --data records.jsonl --packing --bf16 \\\n"
                          "  --num-epochs 2 --output-dir tuned\n"
                          "torchrun --no-python --nproc_per_node 4 megalith-finetune ...\n"
                          "\n") +
              kWhereItTrains)
      .files({{"SAVE/iter_NNNNNNN/", "A checkpoint: what is trained, optimizer, options, tokenizer."},
              {"SAVE/adapter_model.safetensors, SAVE/adapter_config.json",
               "The adapter, or the prefix, as peft writes it."},
              {"SAVE/generated_predictions.jsonl, SAVE/predict_results.json",
               "The answers of --do-generation, and their scores."},
              {"SAVE/hf/, SAVE/merged/",
               "The model as a Hugging Face folder: tuned as a whole, or with the adapter added."}});
}

constexpr const char* kFactory = "LLaMA-Factory";

/// Options of other tools.
struct Dialects {
  PaddleNames paddle;
  FactoryNames factory;
  MindFormersRun mindformers;
  bool of_paddle = false;  // whether the command or its file is for PaddleNLP's scripts
};

/// Adds the options and file keys of other tools.
void add_dialects(Options& options, Dialects& dialects, FinetuneConfig& config) {
  options.add("PaddleNLP", dialects.paddle)
      .add(kFactory, dialects.factory)
      .add("MindFormers", dialects.mindformers);
  options.fates([] { return fates_in(kFinetune); }).translate(translate_axolotl);
  options.translate(translate_paddle_preferences);
  options.translate([](FileTranslation& file) {
    if (is_of_mindformers(file)) translate_mindformers(file);
  });
  options.translate([&](FileTranslation& file) { dialects.of_paddle |= is_of_paddle(file); });
  explain_wandb(options);
  options.derive([&] {
    std::string& folder = config.run.train.tensorboard;
    if (folder.empty()) folder = dialects.paddle.tensorboard(config.run.checkpoint.save);
    dialects.factory.apply(config);
    settle_paddle_training(config.run.train, options);
    if (dialects.of_paddle) take_paddle_loss_scale(config.run.train, options);
  });
  options.rule(
      [&](Problems& problems) { dialects.paddle.check_sharding(config.run.parallel.data, problems); });
}

/// The options that must be added to the command to resume from the checkpoints of its earlier run.
OptionsToResume options_to_resume(const FinetuneConfig& config) {
  const std::string& output = config.run.checkpoint.save;
  const std::string from = config.resume().folder;
  if (from == output) return {};
  if (from.empty() && config.run.checkpoint.overwrite) return {{"--no-overwrite-output-dir"}};
  return {{"--resume-from-checkpoint", output}};
}

int run_tuning(int argc, char** argv) {
  FinetuneConfig config;
  TrainingApp app(argc, argv);
  Options options("finetune", "Tune a GPT or LLaMA model on questions and answers: all parameters, or LoRA.");
  config.add_to(options);
  Dialects dialects;
  dialects.of_paddle = is_of_paddle(std::vector<std::string>(argv, argv + argc));
  add_dialects(options, dialects, config);
  add_notes(options);
  if (!app.read(options)) return 0;
  // PaddleNLP and LLaMA-Factory train an adapter at their rate for everything.
  if (dialects.of_paddle || !options.given_words({kFactory}).empty()) config.lora_rate = kTuningRate;
  app.plan(config.run.parallel);
  set_log_console(LogConsole::kStdout);
  config.run.train.device = resolved_device(config.run.train.device);
  options.check();
  check_files(config, app.files(options));
  return app.run(options,
                 {"finetune", config.run.train, config.run.checkpoint,
                  [&](int64_t) { return options_to_resume(config); },
                  [&](const StopSignal& stop, const std::optional<LaunchedRank>& rank,
                      const ThreadLog& thread_log) { return finetune(config, stop, rank, thread_log); }});
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_training_app("finetune", [&] { return megalith::run_tuning(argc, argv); });
}
