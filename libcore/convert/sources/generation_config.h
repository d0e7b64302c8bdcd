#pragma once

#include "libcore/convert/sources/model_source.h"
#include "libcore/json/json.h"

namespace megalith {

/// The member of a checkpoint's args that keeps what the model that was tuned said about generating.
inline constexpr const char* kGenerationConfig = "generation_config";

/// What a model says about generating with it, in the words of generation_config.json: that file's members,
/// or those that our checkpoint of a tuned model kept; "eos_token_id" else from config.json. An object, empty
/// where nothing is said. kData for files that are no JSON objects.
Json generation_config(const ModelSource& source);

}  // namespace megalith
