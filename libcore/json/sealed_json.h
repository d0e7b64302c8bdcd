#pragma once

#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// The text of an object, indented, with "checksum" added as its last member: the XXH64 of all text before
/// that member, so that seal_of() detects a change of any byte.
std::string sealed(const Json& object);

enum class Seal { kNone, kWhole, kBroken };
/// Checks the checksum of a text that sealed() wrote. kNone: the text has no checksum; kWhole: the checksum
/// is right; kBroken: it is wrong, or is followed by anything but the end that sealed() writes, so that
/// appended bytes are detected, too.
Seal seal_of(std::string_view text);

}  // namespace megalith
