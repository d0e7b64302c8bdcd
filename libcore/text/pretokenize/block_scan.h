#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/text/unicode/char_traits.h"

/// What the kernels that find pretokens in 64-byte blocks (gpt2_scan.h, word_scan.h) have in common.
namespace megalith {

/// What the kernels know about a byte. The class of a byte is that of the characters that begin with it. A
/// byte with kScanMixedLead has no class, since characters of several classes begin with it.
enum BlockFlag : uint8_t {
  kScanLetter = 1,
  kScanNumber = 2,
  kScanSpace = 4,
  kScanLineEnd = 8,  // \r and \n, which are spaces too
  kScanBlank = 16,   // U+0020
  kScanApostrophe = 32,
  kScanMixedLead = 64,
  kScanContinuation = 128  // 0x80 to 0xBF
};

/// Flags that of_kind() adds for the letters of a cased pattern; a letter without any has no case and counts
/// as both upper and lower.
enum CaseFlag : uint8_t { kScanUpper = 16, kScanLower = 32, kScanMark = 64 };

/// The flag that of_kind() gives characters of no class, for patterns that tell them from signs.
constexpr uint8_t kScanOther = 16;

/// What some patterns must know besides these classes.
enum class BlockExtra : uint8_t {
  kNone,
  kCases,     // the case of letters
  kSegments,  // Han and Kana, which are segments of their own, and what is neither letter nor sign
  kDigits,    // numbers are what the Digits pre-tokenizer takes for one (CharTraits::is_digit)
};

/// Which characters are letters, numbers and spaces for a pattern; all others are signs.
class BlockClasses {
 public:
  explicit BlockClasses(KindSet letters, BlockExtra extra = BlockExtra::kNone);

  /// BlockFlags of all bytes.
  const std::array<uint8_t, 256>& flags() const { return flags_; }
  /// kScanLetter, kScanNumber, kScanSpace or 0 for each kind, with CaseFlags or kScanOther.
  const std::array<uint8_t, 16>& of_kind() const { return of_kind_; }

 private:
  std::array<uint8_t, 16> of_kind_{};
  std::array<uint8_t, 256> flags_{};
};

/// \p{L}, \p{N} and \s.
const BlockClasses& plain_classes();

/// Throws kData. A kernel calls this function if the first pretoken of a text is so long that its end cannot
/// be stored.
[[noreturn]] size_t refuse_endless_piece(std::string_view utf8, std::span<uint32_t> ends);

}  // namespace megalith
