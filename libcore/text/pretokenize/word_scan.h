#pragma once

#include "libcore/base/machine/isa.h"
#include "libcore/text/pretokenize/block_scan.h"
#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {

/// GPT-4's pattern and the patterns that descend from it:
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
///   \s+(?!\S)|\s+
/// They differ in what counts as a letter, in how many digits a number may have, and in where contractions
/// are looked for.
/// In the cased patterns a word is
/// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, or the same with + and *
/// swapped, and "/" counts as a line end after signs.
enum class WordPattern : uint8_t {
  kLlama3,    // as above (GPT-4's cl100k)
  kQwen2,     // numbers of one digit: \p{N}
  kQwen35,    // one digit; marks count as letters and may also lead a word
  kNemotron,  // one digit, no contractions (Megatron's "v1" for tiktoken)
  kO200k,     // cased (GPT-4o's), contractions after words
  kTekken,    // cased, one digit, no contractions (also Megatron's "v2")
  kDeepSeek3  // three patterns, one after the other (DeepSeek-V3's; see segment_scan_inl.h)
};

const BlockClasses& word_classes(WordPattern pattern);

/// Kernels for these patterns that read a text in 64-byte blocks, like those of gpt2_scan.h. For valid UTF-8
/// all of them find the pretokens that split_pattern's function for the pattern finds one by one; otherwise
/// every byte still belongs to one pretoken.
using FindWords = size_t (*)(std::string_view utf8, std::span<uint32_t> ends);
FindWords find_words_avx2(WordPattern pattern);
FindWords find_words_avx512vbmi2(WordPattern pattern);
/// The fastest kernel for `isa`; `generic` if there is none.
FindWords find_words(WordPattern pattern, Isa isa, FindWords generic);

/// Length of the first pretoken of `utf8` by a cased pattern, found character by character. The kernels call
/// it where a character's neighbours do not decide whether a pretoken begins. kInternal for a pattern that is
/// not cased.
using FirstPretoken = size_t (*)(std::string_view utf8);
FirstPretoken first_cased_pretoken(WordPattern pattern);

}  // namespace megalith
