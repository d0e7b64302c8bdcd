#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// Python's str.strip() and str.rstrip() without arguments. `text` is valid UTF-8.
std::string_view stripped(std::string_view text);
std::string_view right_stripped(std::string_view text);

/// The number of parts of re.split(r"\s+", text). `text` is valid UTF-8.
int64_t blank_separated_parts(std::string_view text);

/// Python's str.capitalize(): the first character in title case, the others in lower case. A first character
/// whose title case has several characters ("ß") is left as it is. `text` is valid UTF-8.
std::string capitalized(std::string_view text);

/// Python's str.replace(): `text` with each `from` (not empty) replaced by `to`, from left to right.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace megalith
