#pragma once

#include <optional>
#include <string_view>

namespace megalith {

/// Parses the value of a flag, in upper or lower case: true, yes, on, 1; false, no, off, 0. (These include
/// every word that PyYAML reads as a boolean.) Nothing for any other word.
std::optional<bool> parse_flag(std::string_view word);

}  // namespace megalith
