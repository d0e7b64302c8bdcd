#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// What a Hugging Face config.json says about a model.
struct HfModel {
  const NameMap* names;
  ModelConfig config;  // after finish()
};

/// Reads a config.json of GPT-2, LLaMA, Qwen2 or Mistral; `where` begins every message. Members that may be
/// absent get transformers' defaults. Throws kData for another architecture and for each setting that would
/// change the result and is not supported; the message names it.
HfModel parse_hf_config(const Json& json, const std::string& where);

/// The Hugging Face family that can express this configuration. kData if there is none: the message lists,
/// for each family, the options that do not fit.
const NameMap& family_of(const ModelConfig& config);

/// The ids of the tokens that begin and end a text, if the tokenizer has them.
struct SpecialIds {
  std::optional<int64_t> bos, eos;
};
/// config.json and generation_config.json, for transformers 4 as well as 5: these name the rotary base and
/// the type differently, so both names are written.
Json hf_config(const ModelConfig& config, DType dtype, const SpecialIds& ids);
Json hf_generation_config(const SpecialIds& ids);

}  // namespace megalith
