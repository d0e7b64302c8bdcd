#pragma once

#include <string>

#include "libcore/checkpoint/torch/pickle.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// The args of a Megatron run (an argparse.Namespace) as JSON: numbers, texts, flags, and lists of them.
/// Classes and objects become their names ("torch.bfloat16"). Other values are left out.
Json args_json(const PickleTree& tree, PickleRef args);

/// The model that Megatron's args describe; `where` begins every message (kData). The vocabulary's size is
/// not set. Settings that change the result and are not supported are rejected with their names, all in one
/// message.
ModelConfig megatron_config(const Json& args, const std::string& where);

}  // namespace megalith
