#pragma once

#include <string>

#include "libcore/checkpoint/torch/pickle.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// The args of a Megatron run (an argparse.Namespace) as JSON: numbers, texts, flags, and lists of them.
/// Classes and objects become their names ("torch.bfloat16"). Other values are left out.
Json args_json(const PickleTree& tree, PickleRef args);

/// The model that Megatron's args describe. The vocabulary's size is not set. Throws kData, with `where` in
/// front, for settings that change the result and are not supported; one message names them all.
ModelConfig megatron_config(const Json& args, const std::string& where);

}  // namespace megalith
