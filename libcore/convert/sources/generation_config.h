#pragma once

#include <string>

#include "libcore/convert/sources/model_source.h"
#include "libcore/json/json.h"

namespace megalith {

/// The member of a checkpoint's args that keeps what the model that was tuned said about generating.
inline constexpr const char* kGenerationConfig = "generation_config";

/// What a model says about generating with it, in the words of generation_config.json: that file's members,
/// or those that our checkpoint of a tuned model kept; "eos_token_id" else from config.json. An object, empty
/// where nothing is said. `end_from`, if any, becomes what says "eos_token_id", for messages: a file, or the
/// model's folder for what a checkpoint kept. kData for files that are no JSON objects.
Json generation_config(const ModelSource& source, std::string* end_from = nullptr);

}  // namespace megalith
