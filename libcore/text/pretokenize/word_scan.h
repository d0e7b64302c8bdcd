#pragma once

#include "libcore/base/machine/isa.h"
#include "libcore/text/pretokenize/block_scan.h"
#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {

/// The patterns that began with GPT-4's,
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
///   \s+(?!\S)|\s+
/// and differ in what a letter is, how many digits a number has and where contractions are. In the cased ones
/// a word is [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, or the same with +
/// and *, and "/" counts as a line end after signs.
enum class WordPattern : uint8_t {
  kLlama3,    // as above (GPT-4's cl100k)
  kQwen2,     // \p{N}
  kQwen35,    // \p{N}, and marks are letters that may precede others
  kNemotron,  // \p{N}, no contractions (Megatron's "v1" for tiktoken)
  kO200k,     // cased (GPT-4o's), contractions after words
  kTekken,    // cased, \p{N}, no contractions (also Megatron's "v2")
};

const BlockClasses& word_classes(WordPattern pattern);

/// These patterns in 64-byte blocks, as gpt2_scan.h does GPT-2's. For valid UTF-8 all of these find what
/// split_pattern's function for the pattern finds one by one; otherwise every byte still belongs to one
/// pretoken.
using FindWords = size_t (*)(std::string_view utf8, std::span<uint32_t> ends);
FindWords find_words_avx2(WordPattern pattern);
FindWords find_words_avx512vbmi2(WordPattern pattern);
/// The fastest of them for `isa`, or `generic`.
FindWords find_words(WordPattern pattern, Isa isa, FindWords generic);

/// Length of the first pretoken of `utf8` by a cased pattern, found character by character. The kernels need
/// it where the neighbours of a character do not decide. kInternal for a pattern that is not cased.
using FirstPretoken = size_t (*)(std::string_view utf8);
FirstPretoken first_cased_pretoken(WordPattern pattern);

}  // namespace megalith
