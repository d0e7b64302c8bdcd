#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/checkpoint/families/family.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// What a Hugging Face config.json says about a model.
struct HfModel {
  const Family* family;
  ModelConfig config;  // finish() has been called
};

/// Reads a config.json of one of families(); `where` begins every message. Members that may be
/// absent get transformers' defaults. Throws kData for another architecture and for each setting that would
/// change the result and is not supported; the message names it.
HfModel parse_hf_config(const Json& file, const std::string& where);

/// The ids of the tokens that begin and end a text, if the tokenizer has them.
struct SpecialIds {
  std::optional<int64_t> bos, eos;
};
/// config.json and generation_config.json, for both transformers 4 and 5. The two versions have different
/// names for the rotary base and for the type, so the files have both names.
Json hf_config(const ModelConfig& config, DType dtype, const SpecialIds& ids);
Json hf_generation_config(const SpecialIds& ids);

}  // namespace megalith
