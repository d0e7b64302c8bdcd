#pragma once

#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// The text of an object, indented, with a last member "checksum": the XXH64 of all text before it. A change
/// of any byte before it is found when it is read.
std::string sealed(const Json& object);

enum class Seal { kNone, kWhole, kBroken };
/// Whether `text` has such a member, and the right one. After it may stand only what sealed() puts there, so
/// that appended bytes are found too.
Seal seal_of(std::string_view text);

}  // namespace megalith
