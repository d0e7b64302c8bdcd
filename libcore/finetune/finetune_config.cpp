#include "libcore/finetune/finetune_config.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/convert/sources/model_files.h"
#include "libcore/io/run/run_files.h"
#include "libcore/train/devices/trained_where.h"
#include "libcore/train/run/run_rules.h"
#include "libcore/train/tasks/run_tasks.h"

namespace megalith {
namespace {

// A placeholder for the number of steps until the data determine it, so that the rules about steps can be
// checked.
constexpr int64_t kStepsFromData = int64_t{1} << 40;

/// Options for training from scratch, which this program refuses, and what to use instead.
constexpr WithdrawnOption kForPretraining[] = {
    {"load",
     "give --model DIR to begin with; a run resumes from its own --output-dir, or from "
     "--resume-from-checkpoint"},
    {"finetune", "leave it out: a run begins with --model at step 0"},
    {"use-checkpoint-args", "leave it out: the model's shape is that of --model"},
    {"exit-on-missing-checkpoint", "give --resume-from-checkpoint DIR, which must hold one"},
    {"checkpoint", "give --resume-from-checkpoint DIR/iter_NNNNNNN"},
    {"ckpt-step", "give --resume-from-checkpoint DIR/iter_NNNNNNN"},
    {"train-samples", "give --num-train-epochs or --max-steps"},
    {"lr-decay-samples", "give --lr-decay-iters"},
    {"lr-warmup-samples", "give --warmup-steps or --warmup-ratio"},
    {"lr-wsd-decay-samples", "give --lr-wsd-decay-iters"},
    {"step-batch-size-schedule", "give --global-batch-size or --gradient-accumulation-steps"},
    {"full-validation", "leave it out: an evaluation reads all records, once"},
    {"multiple-validation-sets", "leave it out: the records to evaluate on are one set"},
    {"validation-set-names", "leave it out: the records to evaluate on are one set"},
    {"rampup-batch-size", "give --global-batch-size or --gradient-accumulation-steps"},
    {"at-epoch-ends", "give --eval-strategy epoch and --save-strategy epoch"},
    {"count-steps-from-zero", "leave it out: steps are counted from 1"},
    {"eval-only", "give --no-do-train"},
    {"sample-prompt", "give --do-generation, which answers the records to evaluate on"},
    {"sample-tokens", "give --do-generation with --max-new-tokens"},
};

/// Splits each word at its commas: "a,b" becomes "a" and "b".
void split_commas(std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words)
    for (const std::string& part : split(word, ','))
      if (!trim(part).empty()) out.emplace_back(trim(part));
  words = std::move(out);
}

}  // namespace

bool only_for_pretraining(std::string_view option) {
  return std::any_of(std::begin(kForPretraining), std::end(kForPretraining),
                     [&](const WithdrawnOption& one) { return option == one.name; });
}

void TuningDataOptions::finish() {
  if (!instruction) return;
  if (source_length == 0) source_length = 128;
  if (target_length == 0) target_length = 160;
}

void MethodOptions::finish() {
  if (!adapter.empty()) begin_ = adapter_kind(adapter);
  if (type)
    method = *type;
  else if (prefix || (begin_.name == kPeftPrefix && !lora))
    method = "prefix";
  else if (lora || !adapter.empty())
    method = "lora";
  if (is_prefix() && !prefix_positions && begin_.positions > 0) prefix_positions = begin_.positions;
  split_commas(modules);
}

void MethodOptions::validate(Problems& problems) const {
  if (lora && prefix)
    problems.add(Opt{"lora"}, " and ", Opt{"prefix-tuning"}, " contradict each other; give one of them");
  for (const auto& [given, kind, option] :
       {std::tuple(lora, "lora", Opt{"lora"}), std::tuple(prefix, "prefix", Opt{"prefix-tuning"})})
    if (given && type && *type != kind)
      problems.add(Opt{"finetuning-type"}, ' ', *type, " and ", option,
                   " contradict each other; give one of them");
  check_adapter(problems);
  const std::pair<bool, Opt> of_lora[] = {{rank.has_value(), {"lora-rank"}},
                                          {alpha.has_value(), {"lora-alpha"}},
                                          {dropout.has_value(), {"lora-dropout"}},
                                          {rslora.has_value(), {"use-rslora"}},
                                          {!modules.empty(), {"target-modules"}}};
  for (const auto& [given, name] : of_lora)
    if (given && !is_lora()) problems.add(name, " needs ", Opt{"lora"});
  if (prefix_positions && !is_prefix())
    problems.add(Opt{"num-prefix-tokens"}, " needs ", Opt{"prefix-tuning"});
  if (merge && !is_lora())
    problems.add(Opt{"merge-weights"}, " needs ", Opt{"lora"},
                 ": without an adapter there is nothing to add");
  if (loraplus_ratio != 1 && !is_lora()) problems.add(Opt{"loraplus-lr-ratio"}, " needs ", Opt{"lora"});
  if (qlora && !is_lora())
    problems.add(Opt{"qlora"}, " needs ", Opt{"lora"}, ": what is kept in 8 bits is not trained");
}

void MethodOptions::check_adapter(Problems& problems) const {
  if (adapter.empty()) return;
  if (method == "full")
    problems.add(Opt{"finetuning-type"}, " full and ", Opt{"adapter"}, ' ', adapter,
                 " contradict each other; leave out one of them, or add the adapter to the model first: "
                 "megalith-convert ",
                 Opt{"merge-adapter"}, ' ', adapter);
  if (begin_.name == kPeftLora && is_prefix())
    problems.add(Opt{"adapter"}, ' ', adapter,
                 " is a LoRA adapter, but the options train a prefix; leave out one of them");
  if (begin_.name == kPeftPrefix && is_lora())
    problems.add(Opt{"adapter"}, ' ', adapter,
                 " is a prefix, but the options train LoRA; leave out one of them");
  if (is_prefix() && begin_.positions > 0 && prefix_positions != begin_.positions)
    problems.add(Opt{"num-prefix-tokens"}, ' ', *prefix_positions, ": ", Opt{"adapter"}, ' ', adapter,
                 " has ", begin_.positions, "; leave it out");
}

void ScheduleOptions::validate(Problems& problems) const {
  if ((best || patience > 0) && (!do_eval || evaluate == Moments::kNo))
    problems.add(Opt{best ? "load-best-model-at-end" : "early-stopping-patience"},
                 " needs evaluations; give ", Opt{"do-eval"}, " and ", Opt{"eval-strategy"},
                 " steps or epoch");
  static const std::vector<std::string> kKnown = {"disable_p2p_cache_shape", "disable_partial_send_recv",
                                                  "enable_delay_scale_loss", "enable_release_grads",
                                                  "enable_dp_comm_overlap",  "enable_timer",
                                                  "disable_batch_p2p_comm"};
  for (const std::string& words : pipeline_config)
    for (const std::string& word : split(words, ' '))
      if (!word.empty() && std::find(kKnown.begin(), kKnown.end(), word) == kKnown.end())
        problems.add(Opt{"pipeline-parallel-config"}, ' ', quote(word), " is not known; wanted one of ",
                     join(kKnown, ", "));
}

FinetuneConfig::FinetuneConfig() {
  run.train.micro_batch = 8;
  run.train.lr = kTuningRate;
  run.train.weight_decay = 0;
  run.train.log_interval = 10;
  run.train.eval_iters = 0;
  run.train.epochs = schedule.epochs;
  // GradScaler of torch begins at 2^16: that of Megatron-LM would skip the steps of a short run.
  run.train.initial_loss_scale = 65536;
}

void FinetuneConfig::add_to(Options& options) {
  options.add("Model and data", data).add("Method", method).add("Schedule", schedule);
  options.add("Answers", generation).add("Preferences", preference);
  options.add("Training", run.train).add("Parallelism", run.parallel).add("Tokenizer", run.tokenizer);
  options.add("Checkpoints", run.checkpoint);
  options.derive([this, &options] {
    steps_given = options.given("train-iters");
    if (!options.given("lr") && method.is_lora() && !preference.wanted) run.train.lr = lora_rate;
    if (options.given("eval-interval") && !options.given("eval-strategy"))
      schedule.evaluate = Moments::kSteps;
    if (options.given("save-interval") && !options.given("save-strategy")) schedule.save = Moments::kSteps;
    if (schedule.evals_per_epoch > 0) schedule.evaluate = Moments::kSteps;
    if (schedule.saves_per_epoch > 0) schedule.save = Moments::kSteps;
    if (!steps_given) run.train.iters = kStepsFromData;
    // The rules about a run's length accept steps or epochs, but not both, so the epochs move to `schedule`.
    if (run.train.epochs) schedule.epochs = *std::exchange(run.train.epochs, std::nullopt);
    take_output(options);
    // As in transformers, whoever says when to evaluate wants it; the steps between are those of the log.
    if (options.given("eval-strategy") && schedule.evaluate != Moments::kNo) schedule.do_eval = true;
    if (options.given("eval-strategy") && !options.given("eval-interval"))
      run.train.eval_interval = run.train.log_interval;
    // Without a dynamic scale, validate() refuses any first value but the default of TrainConfig.
    if ((!run.train.fp16 || run.train.fixed_loss_scale()) && !options.given("initial-loss-scale"))
      run.train.initial_loss_scale = TrainConfig().initial_loss_scale;
    if (schedule.only_model) run.checkpoint.save_optim = false;
    if (!schedule.pipeline_config.empty())
      options.note_ignored("--pipeline-parallel-config " + join(schedule.pipeline_config, " "));
    run.train.finish(run.parallel);
  });
  options.rule([this](Problems& problems) {
    run.train.validate(run.parallel, problems);
    check_folders(problems);
    check_combinations(problems);
    if (preference.wanted) check_preferences(problems);
  });
  options.withdraw(kForPretraining);
}

// --output-dir and --save are one setting: the command line takes precedence over a --config file, in which
// other tools' translators write either.
void FinetuneConfig::take_output(const Options& options) {
  std::string& save = run.checkpoint.save;
  const auto set_aside = [&](const char* name, const char* other, const std::string& value) {
    const bool sets = options.on_command_line(name) && options.in_config_file(other);
    if (sets)
      log("--", name, " on the command line comes before --", other, ' ', value, " (", options.source(other),
          ')');
    return sets;
  };
  if (schedule.output.empty()) return;
  if (set_aside("save", "output-dir", schedule.output))
    schedule.output = save;
  else if (!options.given("save") || set_aside("output-dir", "save", save))
    save = schedule.output;
}

// As in transformers, "true" stands for the newest checkpoint of the output folder. Without training, the
// requested model is evaluated, not a checkpoint that the folder happens to hold.
FinetuneConfig::Resume FinetuneConfig::resume() const {
  if (schedule.resume_from.empty() && !schedule.do_train) return {{}, false};
  for (const char* word : {"", "true", "True", "1"})
    if (schedule.resume_from == word)
      return {run.checkpoint.overwrite ? "" : run.checkpoint.save,
              !schedule.do_train && !run.checkpoint.overwrite};
  return {schedule.resume_from, true};
}

std::vector<std::string> FinetuneConfig::earlier_results() const {
  std::vector<std::string> results;
  if (run.checkpoint.save.empty()) return results;
  for (const std::string_view name : kTuningResults) {
    const std::string path = concat(run.checkpoint.save, "/", name), real = real_path(path);
    const auto holds = [&](const std::string& input) {
      return !input.empty() && (real_path(input) + "/").starts_with(real + "/");
    };
    const TokenizerConfig& tokenizer = run.tokenizer;
    const std::string* const inputs[] = {&data.model,      &data.data,        &data.eval_data,
                                         &method.adapter,  &tokenizer.vocab,  &data.chat_template,
                                         &tokenizer.model, &tokenizer.merges, &schedule.resume_from};
    if (std::none_of(std::begin(inputs), std::end(inputs), [&](const auto* input) { return holds(*input); }))
      results.push_back(path);
  }
  return results;
}

void FinetuneConfig::check_folders(Problems& problems) const {
  const bool writes = schedule.do_train || generation.wanted || !schedule.resume_from.empty();
  if (writes && run.checkpoint.save.empty())
    problems.add(Opt{"output-dir"}, " (", Opt{"save"}, ") is missing");
  if (!schedule.output.empty() && run.checkpoint.save != schedule.output)
    problems.add(Opt{"output-dir"}, ' ', schedule.output, " and ", Opt{"save"}, ' ', run.checkpoint.save,
                 " contradict each other; give one of them");
  check_replaced(problems);
  if (run.checkpoint.overwrite && !schedule.resume_from.empty() && resume().folder.empty())
    problems.add(Opt{"overwrite-output-dir"}, " and ", Opt{"resume-from-checkpoint"}, ' ',
                 schedule.resume_from, " contradict each other; give one of them");
  if (!traits_of(run.checkpoint.format).native)
    problems.add(Opt{"ckpt-format"},
                 " torch and pth are for megalith-pretrain; leave it out: the result is written for peft or "
                 "as a Hugging Face folder");
}

// Adds a problem for each input that the run's results would replace.
void FinetuneConfig::check_replaced(Problems& problems) const {
  struct Begin {
    Opt option;
    const std::string& path;
    const char* result;  // path of the result below --output-dir
    bool written;
  };
  const bool trains = schedule.do_train;
  for (const auto& [option, path, result, written] :
       {Begin{{"adapter"}, method.adapter, "", trains},
        {{"model"}, data.model, "", trains},
        {{"model"}, data.model, "/hf", trains && method.method == "full" && method.export_model},
        {{"model"}, data.model, "/merged", trains && method.merge},
        {{"data"}, data.data, "/generated_predictions.jsonl", generation.wanted},
        {{"eval-data"}, data.eval_data, "/generated_predictions.jsonl", generation.wanted}})
    if (written && !path.empty() && real_path(path) == real_path(run.checkpoint.save + result))
      problems.add(option, ' ', quote(path), " would be replaced by the result of the run in ",
                   Opt{"output-dir"}, ' ', quote(run.checkpoint.save), "; give another folder");
}

void FinetuneConfig::check_method(Problems& problems) const {
  const std::string& device = run.train.device;
  if (device == "gpu") return;  // becomes cuda or cpu when the devices are known
  const std::pair<bool, DeviceMethod> methods[] = {{method.is_lora(), DeviceMethod::kLora},
                                                   {method.qlora, DeviceMethod::kEightBitLora},
                                                   {method.is_prefix(), DeviceMethod::kPrefix},
                                                   {data.packing, DeviceMethod::kPacked},
                                                   {preference.wanted, DeviceMethod::kPreferences}};
  for (const auto& [wanted, kind] : methods) {
    const std::string lacking = wanted ? lacking_there({.device = device, .method = kind}) : std::string();
    if (!lacking.empty())
      return problems.add(Opt{"device"}, ' ', device, ": this version does not train on ", lacking, "; give ",
                          Opt{"device"}, " cpu");
  }
}

void FinetuneConfig::check_combinations(Problems& problems) const {
  if (run.parallel.context > 1 && (method.is_prefix() || data.packing))
    problems.add(Opt{"context-parallel-size"}, ' ', run.parallel.context, " cannot be combined with ",
                 Opt{"prefix-tuning"}, " or ", Opt{"packing"}, "; leave it at 1");
  if (method.is_prefix() && data.packing)
    problems.add(Opt{"packing"}, " and ", Opt{"prefix-tuning"},
                 " contradict each other: a prefix precedes a single record; leave out ", Opt{"packing"});
  check_eval_tasks(run, problems);
  if (!run.train.eval_tasks.empty() && method.is_prefix())
    problems.add(Opt{"eval-tasks"}, " and ", Opt{"prefix-tuning"},
                 " cannot be combined; leave it out, and evaluate the result: megalith-eval --adapter");
  if (!run.train.eval_tasks.empty() && !schedule.do_eval)
    problems.add(Opt{"eval-tasks"}, " and ", Opt{"no-do-eval"},
                 " contradict each other; leave out one of them");
  check_method(problems);
}

void FinetuneConfig::check_preferences(Problems& problems) const {
  if (schedule.by_accuracy())
    problems.add(Opt{"metric-for-best-model"}, ' ', schedule.metric, " counts the tokens of answers, which ",
                 Opt{"dpo"}, " does not learn; give eval_loss");
  if (method.is_prefix())
    problems.add(Opt{"dpo"}, " trains all parameters or ", Opt{"lora"},
                 ": a prefix cannot be left out of the reference");
  if (data.packing)
    problems.add(Opt{"packing"}, " and ", Opt{"dpo"},
                 " contradict each other: each answer has its own loss; leave out ", Opt{"packing"});
  if (method.dropout.value_or(0) > 0 || method.attention_dropout.value_or(0) > 0 ||
      method.hidden_dropout.value_or(0) > 0)
    problems.add(Opt{"dpo"},
                 " needs dropout 0: dropout would make the probabilities of answers random; leave it out");
}

void check_files(const FinetuneConfig& config, RunFiles files) {
  reads_model(files, "--model", config.data.model);
  // Not for --output-dir itself: it may hold other files of the user, such as a log.
  const std::string& save = config.run.checkpoint.save;
  if (const std::string resumed = config.resume().folder; real_path(resumed) != real_path(save))
    reads_model(files, "--resume-from-checkpoint", resumed);
  files.reads("--data", config.data.data);
  files.reads("--eval-data", config.data.eval_data);
  files.reads("--chat-template", config.data.chat_template);
  files.reads("--adapter", config.method.adapter);
  reads_tokenizer(files, config.run.tokenizer);
  reads_eval_tasks(files, config.run.train);
  add_run_outputs(files, config.run);
  if (!save.empty()) files.keeps("--output-dir", save, kTuningResults);
  files.check();
}

}  // namespace megalith
