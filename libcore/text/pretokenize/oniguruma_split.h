#pragma once

#include <string_view>

#include "libcore/text/pretokenize/split_pattern.h"

namespace megalith {

// The matches of a regular expression that the library Oniguruma finds, for a TextCutter. Both throw what
// oniguruma_pattern() throws.

SplitPattern oniguruma_split_pattern(std::string_view regex);
/// In a text whose bytes are written in GPT-2's byte alphabet.
SplitPattern oniguruma_split_pattern_of_bytes(std::string_view regex);

}  // namespace megalith
