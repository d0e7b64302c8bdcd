#pragma once

#include <string>

#include "libcore/finetune/finetune_config.h"

namespace megalith {

/// LLaMA-Factory's options and values for which fine-tuning has other names. docs/finetune.md.
struct FactoryNames {
  std::string stage = "sft";

  template <class V>
  void fields(V&& v) {
    v("stage", stage, "What is learned: sft, or dpo as --dpo.", one_of({"sft", "dpo"}));
  }
  /// Sets our options that these stand for. Call after the structs' finish() (Options::derive()).
  void apply(FinetuneConfig&) const;
};

}  // namespace megalith
