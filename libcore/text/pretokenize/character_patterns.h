#pragma once

#include "libcore/text/pretokenize/split_pattern.h"

namespace megalith {

// Patterns that match characters of one kind, as pre-tokenizers of Hugging Face that look at single
// characters tell them apart: each such character alone if `each`, otherwise runs of them.

/// Numbers, as Digits takes them. kDigitsName is the name of the pattern of each number.
inline constexpr const char* kDigitsName = "digits";
SplitPattern digits_pattern(bool each);
/// The same in a text whose bytes are written in GPT-2's byte alphabet.
SplitPattern digits_pattern_of_bytes(bool each);
/// Signs, as Punctuation and BertPreTokenizer take them.
SplitPattern punctuation_pattern(bool each);
/// Runs of white space, as WhitespaceSplit takes it.
SplitPattern spaces_pattern();
/// Runs of letters and other characters of words, as Whitespace takes them.
SplitPattern words_pattern();

}  // namespace megalith
