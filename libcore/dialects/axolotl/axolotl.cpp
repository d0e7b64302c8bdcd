#include "libcore/dialects/axolotl/axolotl.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// A key, with its groups, that is our option under another name.
struct Renamed {
  const char *path, *option;
};
constexpr Renamed kRenamed[] = {
    {"datasets.path", "data"},
    {"test_datasets.path", "eval-data"},
    {"lr_scheduler", "lr-decay-style"},
    {"adam_epsilon", "adam-eps"},
    {"gradient_checkpointing", "recompute"},
    {"lora_model_dir", "adapter"},
    {"peft_use_rslora", "use-rslora"},
    {"rl_beta", "dpo-beta"},
};

/// A value that a key may have, and our option with the value that replaces it.
struct Value {
  const char *path, *word;
  const char *option = "", *words = "";  // empty: the value has no effect
};
constexpr Value kValues[] = {
    {"adapter", "lora", "lora", "true"},
    {"bf16", "auto", "bf16", "true"},
    {"bf16", "full", "bf16", "true"},
    {"bf16", "true", "bf16", "true"},
    {"bf16", "false"},
    {"lora_target_linear", "true", "target-modules", "all-linear"},
    {"lora_target_linear", "false"},
    {"optimizer", "adamw_torch"},
    {"optimizer", "adamw_torch_fused"},
    {"optimizer", "adamw_hf"},
    {"optimizer", "adamw"},
    {"rl", "dpo", "dpo", "true"},
    {"evals_per_epoch", "1", "eval-strategy", "epoch"},
    {"evals_per_epoch", "0", "eval-strategy", "no"},
    {"saves_per_epoch", "1", "save-strategy", "epoch"},
    {"saves_per_epoch", "0", "save-strategy", "no"},
    {"train_on_inputs", "false"},
    {"load_in_4bit", "false"},
    {"load_in_8bit", "false"},
    {"load_in_8bit", "true", "qlora", "true"},
    {"datasets.type", "alpaca", "prompt-style", "alpaca"},
    {"datasets.type", "chat_template"},
    {"datasets.type", "sharegpt"},
    {"datasets.split", "train"},
    {"chat_template", "tokenizer_default"},
};
/// What the user can do if a key of kValues has another value.
constexpr Renamed kRemedies[] = {
    {"adapter", "give lora, with load_in_8bit: true for a base in 8 bits"},
    {"bf16", "give true, false or auto"},
    {"lora_target_linear", "give true or false"},
    {"optimizer", "give adamw_torch"},
    {"rl", "give dpo"},
    {"evals_per_epoch", "give 0, 1, or eval_steps"},
    {"saves_per_epoch", "give 0, 1, or save_steps"},
    {"train_on_inputs", "give false: answers are learned"},
    {"load_in_4bit", "give load_in_8bit: true"},
    {"load_in_8bit", "give true or false"},
    {"datasets.type", "give alpaca, chat_template or sharegpt"},
    {"datasets.split", "give train"},
    {"chat_template", nullptr},  // null: may be any other text, which names a file as for our own option
};

/// Keys without effect here. "wandb_*" stands for every key that begins with "wandb_".
constexpr std::string_view kIgnored[] = {
    "model_type",
    "tokenizer_type",
    "is_llama_derived_model",
    "is_mistral_derived_model",
    "trust_remote_code",
    "strict",
    "dataset_prepared_path",
    "dataset_processes",
    "dataset_num_proc",
    "datasets.ds_type",
    "pad_to_sequence_len",
    "eval_sample_packing",
    "flash_attention",
    "xformers_attention",
    "sdp_attention",
    "tf32",
    "wandb_*",
    "hub_*",
    "mlflow_*",
    "loss_watchdog_*",
    "local_rank",
    "debug",
    "special_tokens.*",
    "save_safetensors",
    "eval_table_size",
    "eval_max_new_tokens",
    "auto_resume_from_checkpoints",
    "lora_fan_in_fan_out",
    "lora_on_cpu",
    "gradient_checkpointing_kwargs.*",
    "test_datasets.type",
    "test_datasets.split",
    "test_datasets.ds_type",
    "device_map",
    "ddp_*",
};

bool is_ignored(const std::string& path) {
  return std::any_of(std::begin(kIgnored), std::end(kIgnored), [&](std::string_view name) {
    return name.ends_with("*") ? path.starts_with(name.substr(0, name.size() - 1)) : path == name;
  });
}

const char* option_of(std::span<const Renamed> table, const std::string& path) {
  for (const Renamed& row : table)
    if (path == row.path) return row.option;
  return nullptr;
}

bool is_known(const std::string& path) {
  return std::any_of(std::begin(kValues), std::end(kValues),
                     [&](const Value& value) { return path == value.path; });
}

void put(FileTranslation& file, const FileOption& from, const char* option, std::vector<std::string> words) {
  file.options.push_back({.key = option, .words = std::move(words), .where = from.where});
}

/// Handles a key for which kValues lists the possible values.
void take_value(FileTranslation& file, const FileOption& option, const std::string& path) {
  const std::string word = join(option.words, " ");
  for (const Value& value : kValues)
    if (path == value.path && word == value.word) {
      if (*value.option != '\0') return put(file, option, value.option, {value.words});
      return file.ignored.push_back(path);
    }
  if (const char* const remedy = option_of(kRemedies, path))
    file.problems.add_at(option.where, path, " is ", quote(word), ", which is not supported; ", remedy);
  else
    file.options.push_back(option);
}

void take(FileTranslation& file, const FileOption& option) {
  const std::string path = option.path();
  if (is_ignored(path)) return file.ignored.push_back(path);
  if (option.is_empty()) return;
  if (is_known(path)) return take_value(file, option, path);
  if (const char* const name = option_of(kRenamed, path)) return put(file, option, name, option.words);
  file.options.push_back(option);
}

}  // namespace

void translate_axolotl(FileTranslation& file) {
  const auto is = [](const char* path) {
    return [path](const FileOption& option) { return option.path() == path; };
  };
  if (std::none_of(file.options.begin(), file.options.end(), is("base_model"))) return;
  std::vector<FileOption> read;
  std::swap(read, file.options);
  if (std::count_if(read.begin(), read.end(), is("datasets.path")) > 1)
    file.problems.add_at(read.front().where, "datasets has several entries; put their records into one file");
  // If all linear layers are adapted, the names of single layers add nothing.
  const bool all = std::any_of(read.begin(), read.end(), [&](const FileOption& option) {
    return is("lora_target_linear")(option) && option.words == std::vector<std::string>{"true"};
  });
  if (all) std::erase_if(read, is("lora_target_modules"));
  for (const FileOption& option : read) take(file, option);
}

}  // namespace megalith
