#pragma once

#include <array>
#include <cstdint>

#include "libcore/text/char_traits.h"
#include "libcore/text/pretokenizer.h"

namespace megalith {

/// What the kernels below know of a byte. The class is that of the character which it begins (or is); a byte
/// with which characters of more than one class begin is kMixedLead, and has none.
enum WordScanFlag : uint8_t {
  kScanLetter = 1,
  kScanNumber = 2,
  kScanSpace = 4,
  kScanLineEnd = 8,  // \r and \n, which are spaces too
  kScanBlank = 16,   // U+0020
  kScanApostrophe = 32,
  kScanMixedLead = 64,
  kScanContinuation = 128  // 0x80 to 0xBF
};

/// Which characters are letters, numbers and spaces for a pattern; the rest are signs.
class WordScanClasses {
 public:
  explicit WordScanClasses(KindSet letters);

  /// WordScanFlags of all bytes.
  const std::array<uint8_t, 256>& flags() const { return flags_; }
  /// kScanLetter, kScanNumber, kScanSpace or 0 for each kind.
  const std::array<uint8_t, 16>& of_kind() const { return of_kind_; }

 private:
  std::array<uint8_t, 16> of_kind_{};
  std::array<uint8_t, 256> flags_{};
};

/// For the kernels: the pretoken at the beginning of a text has more bytes than can be told. Throws kData.
[[noreturn]] size_t refuse_endless_piece(size_t bytes);

/// The patterns that began with GPT-4's,
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
///   \s+(?!\S)|\s+
/// and differ in what a letter is, how many digits a number has and whether there are contractions.
enum class WordPattern : uint8_t {
  kLlama3,    // as above (GPT-4's cl100k)
  kQwen2,     // \p{N}
  kQwen35,    // \p{N}, and marks are letters that may stand before others
  kNemotron,  // \p{N}, no contractions (Megatron's "v1" for tiktoken)
};

const WordScanClasses& word_scan_classes(WordPattern pattern);

/// These patterns by 64-byte blocks, as gpt2_scan.h does GPT-2's. For valid UTF-8 all find what
/// split_pattern's function for the pattern finds one by one; else every byte still belongs to one pretoken.
using FindWords = size_t (*)(std::string_view utf8, std::span<uint32_t> ends);
FindWords find_words_avx2(WordPattern pattern);
FindWords find_words_avx512vbmi2(WordPattern pattern);

/// The best of them on this processor (see MEGALITH_ISA in base/isa.h), or `generic`.
FindWords find_words(WordPattern pattern, FindWords generic);

}  // namespace megalith
