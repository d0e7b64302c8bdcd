#pragma once

#include <string>

#include "libcore/checkpoint/families/family.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/json/json.h"

/// What config.json says of layers of different types: which have a window, and how each type is rotated.
namespace megalith {

/// Sets the number of tokens that a token sees, and in which layers. `json` is the file that `s` reads.
/// Throws kData for a pattern of layers that no options describe.
void set_hf_window(ModelConfig&, const Family&, const Settings& s, const Json& json);
/// Appends the members that set_hf_window() reads.
void add_hf_window(Json::Object& members, WindowRule, const ModelConfig&);

/// The file with one "rope_parameters" for all layers, if its family has an object for each type of layer
/// (Family::rope_by_type). Throws kData if these differ, which is not supported.
Json with_one_rotation(const Json& file, const std::string& where);
/// The "rope_parameters" of such a family, of which each type of layer has `rope`.
Json::Object rope_of_types(const Json::Object& rope);

}  // namespace megalith
