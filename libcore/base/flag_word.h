#pragma once

#include <optional>
#include <string_view>

namespace megalith {

/// The value of a word for a flag: true, yes, on, 1, or false, no, off, 0, in any case (and so everything
/// that PyYAML reads as a boolean); nothing if it is none of them.
std::optional<bool> parse_flag(std::string_view word);

}  // namespace megalith
