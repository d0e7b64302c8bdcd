#pragma once

#include <optional>
#include <string_view>

#include "libcore/text/patterns/char_ranges.h"

namespace megalith {

/// The code points that \p{name} matches in Oniguruma, the engine of Hugging Face tokenizers 0.23: general
/// categories ("L", "Lu"), some scripts ("Han"), and "space", "digit" and "word" for \s, \d and \w. Upper and
/// lower case of a name are the same. Nothing if the name is not known.
std::optional<CharRanges> char_property(std::string_view name);

/// What \w matches in a set (char_property("word")), and outside of sets, where Oniguruma takes the numbers
/// of Latin-1 for characters of words, too.
CharRanges word_characters(bool outside_of_sets);

}  // namespace megalith
