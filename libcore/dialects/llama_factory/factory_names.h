#pragma once

#include <optional>
#include <string>

#include "libcore/finetune/finetune_config.h"

namespace megalith {

/// LLaMA-Factory's options and values for which fine-tuning has other names. docs/finetune.md.
struct FactoryNames {
  std::string stage = "sft";
  std::optional<std::string> template_name;  // llama3

  template <class V>
  void fields(V&& v) {
    v("stage", stage, "What is learned: sft, or dpo as --dpo.", one_of({"sft", "dpo"}));
    v("template", template_name,
      "Llama 3's chat format, if the model's tokenizer has its tokens, else the model's own chat template; "
      "instruction records become chats, too.",
      one_of({"llama3"}), unlisted());
  }
  /// Sets our options that these stand for. Call after the structs' finish() (Options::derive()).
  void apply(FinetuneConfig&) const;
};

}  // namespace megalith
