#pragma once

#include <optional>
#include <string_view>

namespace megalith {

/// Parses the value of a flag, in any case: true, yes, on and 1 are true; false, no, off and 0 are false.
/// (These include every word that PyYAML reads as a boolean.) Returns nothing for any other word.
std::optional<bool> parse_flag(std::string_view word);

}  // namespace megalith
