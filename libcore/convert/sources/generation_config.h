#pragma once

#include <string>

#include "libcore/convert/sources/model_source.h"
#include "libcore/json/json.h"

namespace megalith {

/// The name of a member of a checkpoint's args: the generation settings of the model that was fine-tuned.
inline constexpr const char* kGenerationConfig = "generation_config";

/// A model's settings for generation, as in generation_config.json. They are that file's members; if the file
/// has none, those that our checkpoint of a tuned model kept. If these lack "eos_token_id", it is taken from
/// config.json. Returns an object, which may be empty. `end_from`, if not null, is set to the source of
/// "eos_token_id", for messages: a file, or the model's folder if a checkpoint kept it. Throws kData for
/// files that are not JSON objects.
Json generation_config(const ModelSource& source, std::string* end_from = nullptr);

}  // namespace megalith
