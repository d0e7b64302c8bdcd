#pragma once

#include <string>

#include "libcore/convert/sources/model_source.h"
#include "libcore/json/json.h"

namespace megalith {

/// The member of a checkpoint's args that keeps the generation settings of the model that was tuned.
inline constexpr const char* kGenerationConfig = "generation_config";

/// A model's settings for generation, as in generation_config.json: that file's members or, if there are
/// none, those that our checkpoint of a tuned model kept. If these lack "eos_token_id", it is taken from
/// config.json. Returns an object, which may be empty. `end_from`, if given, is set to where "eos_token_id"
/// comes from, for messages: a file, or the model's folder if a checkpoint kept it. kData for files that are
/// not JSON objects.
Json generation_config(const ModelSource& source, std::string* end_from = nullptr);

}  // namespace megalith
