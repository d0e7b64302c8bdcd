#pragma once

#include <optional>
#include <string_view>

namespace megalith {

/// What a word says of a flag, wherever one is read: true, yes, on, 1, or false, no, off, 0, in any case (and
/// so all that PyYAML reads as a boolean); nothing: it is neither.
std::optional<bool> parse_flag(std::string_view word);

}  // namespace megalith
