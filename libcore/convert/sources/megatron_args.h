#pragma once

#include <string>

#include "libcore/checkpoint/torch/pickle.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// The args of a Megatron run (an argparse.Namespace) as JSON: numbers, texts, flags, and lists of them.
/// Classes and objects become their name ("torch.bfloat16"). Values that are neither are left out.
Json args_json(const PickleTree& tree, PickleRef args);

/// The model that Megatron's args describe; `where` begins every message (kData). The vocabulary's size is
/// left open. Every setting that changes the result and cannot be had here is rejected with its name, all at
/// once.
ModelConfig megatron_config(const Json& args, const std::string& where);

}  // namespace megalith
