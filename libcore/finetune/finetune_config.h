#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/finetune/lora.h"
#include "libcore/finetune/records.h"
#include "libcore/io/run/run_files.h"
#include "libcore/options/cli.h"

namespace megalith {

inline std::vector<EnumName<PromptStyle>> enum_names(PromptStyle) {
  return {{"alpaca", PromptStyle::kAlpaca}, {"chat", PromptStyle::kChat}, {"plain", PromptStyle::kPlain}};
}
/// When the run evaluates or saves, apart from its end.
enum class Moments { kNo, kSteps, kEpoch };
inline std::vector<EnumName<Moments>> enum_names(Moments) {
  return {{"no", Moments::kNo}, {"steps", Moments::kSteps}, {"epoch", Moments::kEpoch}};
}

/// Whether megalith-finetune refuses this option of megalith-pretrain: "train-samples".
bool only_for_pretraining(std::string_view option);

/// A chat template that another tool has under a name.
struct NamedTemplate {
  std::string name;                // the option and its value, for messages
  std::string jinja;               // the template's source
  std::vector<std::string> marks;  // the tokens by which it separates messages; the last one ends a message
};

/// What is tuned, and on which data.
struct TuningDataOptions {
  std::string model, data = "data", eval_data, chat_template;
  /// Precedes the model's own template if the tokenizer has its marks; --chat-template precedes both.
  std::optional<NamedTemplate> named_template;
  PromptStyle style = PromptStyle::kAlpaca;
  int64_t source_length = 0, target_length = 0, max_length = 0, max_records = 0;
  double val_size = 0;
  bool packing = false, group_by_length = false, instruction = false;

  template <class V>
  void fields(V&& v) {
    v("model", model,
      "The model to tune: a Hugging Face folder, a folder that training saved into, or a checkpoint of "
      "Megatron-LM.",
      required(), metavar("DIR"), alias({"model-name-or-path", "base-model"}));
    v("data", data, "Folder with train.json and, to evaluate, dev.json; or a file of records.",
      metavar("PATH"), alias({"dataset-name-or-path", "dataset", "train-file", "train-dataset-path"}));
    v("eval-data", eval_data, "Records to evaluate on.", metavar("FILE"),
      alias({"eval-dataset", "validation-file", "dev-dataset-path"}), default_text("dev.json of --data"));
    v("val-size", val_size,
      "Hold out this many of --data's records to evaluate on, drawn by --seed; below 1: this fraction. Not "
      "with --eval-data or a dev.json.",
      at_least(0), alias({"val-set-size"}));
    v("max-samples", max_records, "Read at most this many records of a file, the first ones; 0: all.",
      at_least(0));
    v("prompt-style", style,
      "How instruction records become prompts: in Alpaca's words, by the model's chat template, or "
      "unchanged. With chat, src and prompt of a record are a user's message, too.");
    v("chat-template", chat_template, "A chat template to use in place of the model's own.", metavar("FILE"));
    v("src-length", source_length,
      "Maximum number of tokens of a prompt; a longer one loses its beginning; 0: no limit.", at_least(0),
      alias({"max-source-length", "max-prompt-len"}),
      default_text("128 with --instruction-generation, else 0"));
    v("tgt-length", target_length,
      "Maximum number of tokens of an answer; a longer one loses its end; 0: no limit.", at_least(0),
      alias({"max-target-length"}), default_text("160 with --instruction-generation, else 0"));
    v("max-length", max_length, "Maximum number of tokens of a record; a longer one loses its end.",
      at_least(0), alias({"max-seq-length", "max-seq-len", "cutoff-len", "sequence-len"}),
      default_text("what the model's positions allow"));
    v("packing", packing,
      "Put several records in a sequence; none attends to another, and the positions of each start at 0.",
      alias({"zero-padding", "sample-packing", "neat-packing"}));
    v("group-by-length", group_by_length, "Put records of similar length in a batch.");
    v("instruction-generation", instruction, "PaddleNLP's instruction tuning: limits prompts and answers.");
  }
  void finish();
};

/// Number of positions of a prefix if the user gives none.
inline constexpr int64_t kPrefixPositions = 64;

/// The default learning rates: of LoRA that learns answers (docs/finetune.md), and of everything else.
inline constexpr double kLoraRate = 2e-4, kTuningRate = 5e-5;

/// Which parameters are trained.
struct MethodOptions {
  bool lora = false, prefix = false, merge = false, export_model = true, qlora = false;
  std::optional<std::string> type;
  std::string method = "full";  // derived: which parameters are trained
  std::optional<int64_t> rank, prefix_positions;
  std::optional<bool> rslora;
  std::optional<double> alpha, dropout;
  double loraplus_ratio = 1;
  std::vector<std::string> modules;
  std::string adapter;
  std::optional<double> attention_dropout, hidden_dropout;
  std::optional<std::string> export_dtype;

  template <class V>
  void fields(V&& v) {
    v("finetuning-type", type, "What is trained: all parameters, or an adapter.",
      one_of({"full", "lora", "prefix"}),
      default_text("as --lora, --prefix-tuning or --adapter say, else full"));
    v("lora", lora,
      "Train a LoRA adapter; the model's own parameters are frozen. The default of --lr is then 2e-4, but "
      "with --dpo 5e-5.",
      alias({"use-lora"}));
    v("prefix-tuning", prefix,
      "Train keys and values before each sequence; the model's parameters are frozen.");
    v("num-prefix-tokens", prefix_positions, "Positions of --prefix-tuning.", between(1, 1 << 20),
      default_text(concat(kPrefixPositions, "; with --adapter as many as that has")));
    v("lora-rank", rank, "Rank of the adapter's matrices.", between(1, 4096), alias({"r", "lora-r"}),
      default_text(concat(kLoraRank)));
    v("lora-alpha", alpha, "The adapter's product is multiplied by alpha / rank.", positive(),
      default_text("2 * lora-rank"));
    v("lora-dropout", dropout, "Dropout on the input of an adapter.", between(0, 0.999),
      default_text("0; with --adapter as that says, with --dpo 0"));
    v("target-modules", modules,
      "Linear layers that get an adapter, by their Hugging Face names (q_proj, v_proj), with commas or "
      "blanks.",
      metavar("NAME"), alias({"lora-target-modules", "lora-target"}), default_text(kAllLinear));
    v("use-rslora", rslora, "Multiply by alpha / sqrt(rank) instead.", alias({"rslora"}), default_text("no"));
    v("loraplus-lr-ratio", loraplus_ratio,
      "LoRA+: ratio of the learning rate of the adapter's matrices B to that of its A; 1: LoRA.", positive());
    v("qlora", qlora,
      "With --lora, keep the linear layers' own weights in 8 bits with a scale for each row; CPU only.",
      alias({"load-in-8bit"}));
    v("adapter", adapter, "Start from this adapter of peft, LoRA or a prefix, and use its settings.",
      metavar("DIR"), alias({"lora-path", "adapter-name-or-path"}));
    v("merge-weights", merge, "Also write the model with the adapter added at the end, to OUTPUT/merged.");
    v("export-model", export_model,
      "Also write the model as a Hugging Face folder, OUTPUT/hf, at the end of a run that trains all "
      "parameters.");
    v("export-dtype", export_dtype, "Type of the parameters in OUTPUT/hf and OUTPUT/merged.",
      one_of({"fp32", "bf16", "fp16"}), default_text("that of --model"));
    v("attention-dropout", attention_dropout, "Dropout on attention weights.", between(0, 1),
      default_text("as the model says; with --dpo 0"));
    v("hidden-dropout", hidden_dropout, "Dropout on the residual branches and the embedding.", between(0, 1),
      default_text("as the model says; with --dpo 0"));
  }
  void finish();
  void validate(Problems&) const;
  bool is_lora() const { return method == "lora"; }
  bool is_prefix() const { return method == "prefix"; }
  /// Number of positions that the prefix takes before each sequence.
  int64_t positions_before() const { return is_prefix() ? prefix_positions.value_or(kPrefixPositions) : 0; }
  /// Number of the model's positions that are left for a sequence.
  int64_t positions_left(const ModelConfig& model) const { return model.max_positions - positions_before(); }

 private:
  void check_adapter(Problems&) const;
  AdapterKind begin_;  // the kind of --adapter
};

/// How long a run is, and what happens between steps.
struct ScheduleOptions {
  double epochs = 3;  // derived from --num-epochs of the training options
  bool do_train = true, do_eval = true, best = false, only_model = false;
  Moments evaluate = Moments::kEpoch, save = Moments::kNo;
  int64_t patience = 0;
  int evals_per_epoch = 0, saves_per_epoch = 0;  // axolotl's; 0: not given
  double threshold = 0;
  std::string metric = "eval_loss", output, resume_from;
  std::vector<std::string> pipeline_config;

  template <class V>
  void fields(V&& v) {
    v("output-dir", output, "As --save.", metavar("DIR"));
    v("do-train", do_train,
      "Train. --no-do-train evaluates the model that --model, --adapter or --resume-from-checkpoint names, "
      "and lets it answer.");
    v("do-eval", do_eval, "Evaluate, if there are records for it.");
    v("eval-strategy", evaluate,
      "When to evaluate besides at the end: no, every --eval-interval steps, or each epoch.",
      alias({"evaluation-strategy"}), default_text("epoch; with --eval-interval steps"));
    v("save-strategy", save,
      "When to save besides at the end: no, every --save-interval steps, or each epoch.",
      default_text("no; with --save-interval steps"));
    v("evals-per-epoch", evals_per_epoch, "Evaluate this many times in an epoch.", at_least(0), unlisted());
    v("saves-per-epoch", saves_per_epoch, "Save this many times in an epoch.", at_least(0), unlisted());
    v("load-best-model-at-end", best,
      "Save at each evaluation that is better than all earlier ones, and write the best model at the end.");
    v("metric-for-best-model", metric,
      "The figure that decides which model is best; accuracy: the share of the answers' tokens that the "
      "model would choose, given those before.",
      one_of({"eval_loss", "loss", "accuracy", "eval_accuracy"}));
    v("early-stopping-patience", patience, "Stop after this many evaluations that were no better; 0: never.",
      at_least(0));
    v("early-stopping-threshold", threshold,
      "How much lower a loss, or greater an accuracy, must be to count as better.", at_least(0));
    v("resume-from-checkpoint", resume_from,
      "Resume from this checkpoint, or from the newest one of this folder.", metavar("DIR"));
    v("save-only-model", only_model, "As --no-save-optim.", unlisted());
    v("pipeline-parallel-config", pipeline_config,
      "Paddle's settings of a pipeline's messages; no effect here.", metavar("WORD"), unlisted());
  }
  void validate(Problems&) const;
  bool by_accuracy() const { return metric.ends_with("accuracy"); }
};

/// Options for answers of the tuned model, which are compared with those in the records.
struct AnswerOptions {
  bool wanted = false;
  int64_t max_tokens = 0;  // maximum number of tokens of an answer; see answer_length()

  template <class V>
  void fields(V&& v) {
    v("do-generation", wanted,
      "Answer the prompts of the evaluation records at the end, greedily, and score the answers against the "
      "records' (BLEU, ROUGE-L, exact match).",
      alias({"eval-with-do-generation", "predict-with-generate", "do-predict"}));
    v("max-new-tokens", max_tokens,
      "Maximum number of tokens of such an answer; 0: --tgt-length, else 128, and at most half of the "
      "model's positions.",
      between(0, 1 << 20));
  }
};

/// Direct preference optimization: the model learns which of two answers is better.
struct PairOptions {
  bool wanted = false;
  std::string loss = "sigmoid";
  double beta = 0.1, smoothing = 0;

  template <class V>
  void fields(V&& v) {
    v("dpo", wanted,
      "Learn from records of a chosen and a rejected answer which is better (direct preference "
      "optimization); the reference is the model before the run, without an adapter.");
    v("dpo-beta", beta, "Cost of leaving the reference; a lower value allows more freedom.", positive(),
      alias({"pref-beta", "beta"}));
    v("dpo-label-smoothing", smoothing, "Fraction of the records whose answers are assumed to be swapped.",
      between(0, 0.499), alias({"label-smoothing"}));
    v("dpo-loss-type", loss, "Only the sigmoid of the paper is supported.", one_of({"sigmoid"}),
      alias({"pref-loss", "loss-type"}), unlisted());
  }
  int64_t answers() const { return wanted ? 2 : 1; }  // answers per record
};

/// All options of megalith-finetune. The model's shape, the sequence length and the number of steps depend on
/// files; prepare_tuning() sets them in `run`.
struct FinetuneConfig {
  FinetuneConfig();

  TuningDataOptions data;
  MethodOptions method;
  ScheduleOptions schedule;
  AnswerOptions generation;
  PairOptions preference;
  PretrainConfig run;
  bool steps_given = false;  // whether the user set the number of steps
  /// The learning rate of LoRA on answers if none is given. A dialect may replace it before options.check().
  double lora_rate = kLoraRate;

  /// The folder from whose newest checkpoint the run resumes; empty: the run starts over. `wanted`: the user
  /// named the folder, so it must hold a checkpoint.
  struct Resume {
    std::string folder;
    bool wanted;
  };
  Resume resume() const;
  /// The paths of the results that an earlier run may have left in --output-dir, without those that are, or
  /// hold, an input of this run.
  std::vector<std::string> earlier_results() const;

  /// Adds the option groups and the rules between them. Both this object and `options` must live until
  /// options.check().
  void add_to(Options& options);

 private:
  void take_output(const Options&);
  void check_folders(Problems&) const;
  void check_replaced(Problems&) const;
  void check_method(Problems&) const;
  void check_combinations(Problems&) const;
  void check_preferences(Problems&) const;
};

/// The names of the files and folders that a run writes to --output-dir (its --save) besides checkpoints.
inline constexpr std::string_view kTuningResults[] = {
    "adapter_model.safetensors",   "adapter_config.json", "hf", "merged",
    "generated_predictions.jsonl", "predict_results.json"};

/// Checks the files that the run writes in addition to its checkpoints. Throws kUsage if one of them is also
/// read, or is written twice. `files`: the files that the program has already listed.
void check_files(const FinetuneConfig&, RunFiles files);

}  // namespace megalith
