#pragma once

#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// The text of an object, indented, with a last member "checksum": the XXH64 of all text before it. A change
/// of any byte before it is detected on reading.
std::string sealed(const Json& object);

enum class Seal { kNone, kWhole, kBroken };
/// Whether `text` has such a member and it is right. Only what sealed() writes may follow it, so that
/// appended bytes are detected too.
Seal seal_of(std::string_view text);

}  // namespace megalith
