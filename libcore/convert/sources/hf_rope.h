#pragma once

#include "libcore/checkpoint/families/family.h"
#include "libcore/config/model_config.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/json/json.h"

namespace megalith {

/// Reads dynamic, yarn or longrope from `rope`, which is "rope_scaling" or "rope_parameters" of `file`; false
/// for another type. c.max_positions must be set. Throws kData for factors that are missing or unsound.
bool set_long_rope(ModelConfig& c, const RotationRule& rule, const Settings& rope, const Settings& file);

/// "rope_parameters" of these types but for "rope_theta", or an empty object for the default one.
Json::Object long_rope_parameters(const ModelConfig& c);

/// "rope_scaling" for transformers 4, given "rope_parameters"; null: transformers 4 cannot express it. For
/// Phi-3, transformers 4 takes three members and no others.
Json rope_scaling_of(const ModelConfig& c, const RotationRule& rule, const Json::Object& parameters);

}  // namespace megalith
