#pragma once

#include <string>

#include "libcore/json/json.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The shape of a Hugging Face model from its config.json. Accepts what megalith-convert reads
/// (parse_hf_config) and, only for planning, Mixtral, Qwen2 and Qwen3 with experts, gpt-oss, and DeepSeek V2
/// and V3 (their further predicted tokens are a choice of the run: --mtp-num-layers). The quantization of
/// weights does not matter to a plan, nor does the scaling of long positions in the models that are only
/// planned. `where` begins every message; kData in the cases of parse_hf_config.
ModelShape parse_hf_shape(const Json& json, const std::string& where);

/// The config.json that `name` means: that file, the one in a folder, or that of a model downloaded earlier
/// under its id (io/cache/hf_cache.h). kNoInput if there is none of these.
std::string hf_config_file(const std::string& name);

}  // namespace megalith
