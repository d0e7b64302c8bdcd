#include "libcore/dialects/axolotl/axolotl.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// A line of the table: several keys, separated by blanks, with the same meaning.
struct Row {
  std::string_view paths;
  AxolotlKey key;
};

constexpr Row renamed(std::string_view path, const char* option) {
  return {path, {{.name = {}}, option}};
}
/// Keys that must have one of these values, of which kValues translates some.
constexpr Row fixed(std::string_view path, std::string_view values, std::string_view remedy) {
  return {path, {{.name = {}, .remedy = remedy, .plain = values}}};
}
constexpr Row ignored(std::string_view paths) {
  return {paths, {{.name = {}}}};
}

constexpr Row kRows[] = {
    renamed("datasets.path", "data"),
    renamed("test_datasets.path", "eval-data"),
    renamed("lr_scheduler", "lr-decay-style"),
    renamed("adam_epsilon", "adam-eps"),
    renamed("gradient_checkpointing", "recompute"),
    renamed("lora_model_dir", "adapter"),
    renamed("peft_use_rslora", "use-rslora"),
    renamed("rl_beta", "dpo-beta"),
    fixed("adapter", "lora", "give lora, with load_in_8bit: true for a base in 8 bits"),
    fixed("bf16", "auto|full|true|false", "give true, false or auto"),
    fixed("lora_target_linear", "true|false", "give true or false"),
    fixed("optimizer",
          "adamw_torch|adamw_torch_fused|adamw_hf|adamw|adamw_8bit|adamw_bnb_8bit|paged_adamw_8bit|"
          "paged_adamw_32bit",
          "give adamw_torch"),
    fixed("rl", "dpo", "give dpo"),
    renamed("evals_per_epoch", "evals-per-epoch"),
    renamed("saves_per_epoch", "saves-per-epoch"),
    fixed("train_on_inputs", "false", "give false: answers are learned"),
    fixed("load_in_4bit", "false", "give load_in_8bit: true"),
    fixed("load_in_8bit", "true|false", "give true or false"),
    fixed("datasets.type", "alpaca|chat_template|sharegpt", "give alpaca, chat_template or sharegpt"),
    fixed("datasets.split", "train", "give train"),
    ignored("model_type tokenizer_type is_llama_derived_model is_mistral_derived_model trust_remote_code "
            "strict dataset_prepared_path dataset_processes dataset_num_proc datasets.ds_type "
            "pad_to_sequence_len eval_sample_packing flash_attention xformers_attention sdp_attention tf32 "
            "wandb_* hub_* mlflow_* fsdp_config fsdp_config.* loss_watchdog_* local_rank debug "
            "special_tokens.* save_safetensors "
            "eval_table_size eval_max_new_tokens auto_resume_from_checkpoints lora_fan_in_fan_out "
            "lora_on_cpu gradient_checkpointing_kwargs.* test_datasets.type test_datasets.split "
            "test_datasets.ds_type device_map ddp_*"),
};

/// A value of a key, and our option with the value that replaces it.
struct Value {
  const char *path, *word;
  const char *option = "", *words = "";  // empty: the value has no effect
};
constexpr Value kValues[] = {
    {"adapter", "lora", "lora", "true"},
    {"bf16", "auto|full|true", "bf16", "true"},
    {"lora_target_linear", "true", "target-modules", "all-linear"},
    {"rl", "dpo", "dpo", "true"},
    {"evals_per_epoch", "1", "eval-strategy", "epoch"},
    {"evals_per_epoch", "0", "eval-strategy", "no"},
    {"saves_per_epoch", "1", "save-strategy", "epoch"},
    {"saves_per_epoch", "0", "save-strategy", "no"},
    {"load_in_8bit", "true", "qlora", "true"},
    {"datasets.type", "alpaca", "prompt-style", "alpaca"},
    {"chat_template", "tokenizer_default"},  // any other text names a file, as for our own option
};

void put(FileTranslation& file, const FileOption& from, const char* option, std::vector<std::string> words) {
  if (*option == '\0')
    file.ignored.push_back(from.path());
  else
    file.options.push_back({.key = option, .words = std::move(words), .where = from.where});
}

/// Whether kValues translates the key's value. If so, does it.
bool translate_value(FileTranslation& file, const FileOption& option) {
  for (const Value& value : kValues)
    if (option.path() == value.path && is_one_of(value.word, option.words)) {
      put(file, option, value.option, {value.words});
      return true;
    }
  return false;
}

void take(FileTranslation& file, const FileOption& option) {
  const AxolotlKey* const key = find_fate(axolotl_keys(), option.path());
  const bool named = key && *key->option == '\0';
  if (named && key->remedy.empty()) return file.ignored.push_back(option.path());
  if (option.is_empty() || translate_value(file, option)) return;
  if (!key)
    file.options.push_back(option);
  else if (refuses(*key, option.words))
    file.problems.add_at(option.where, option.path(), " is ", quote(join(option.words, " ")),
                         ", which is not supported; ", key->remedy);
  else
    put(file, option, key->option, option.words);
}

}  // namespace

const std::vector<AxolotlKey>& axolotl_keys() {
  static const std::vector<AxolotlKey> kAll = one_by_one<AxolotlKey>(kRows);
  return kAll;
}

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
    return is("lora_target_linear")(option) && is_one_of("true", option.words);
  });
  if (all) std::erase_if(read, is("lora_target_modules"));
  for (const FileOption& option : read) take(file, option);
}

}  // namespace megalith
