#pragma once

#include <cstdint>

namespace megalith {

/// The kinds of characters that the patterns of tokenizers distinguish, in general categories of Unicode
/// 16.0.
enum class CharKind : uint8_t {
  kOther = 0,    // C* (controls, unassigned, private), Z* that are not white space (there are none)
  kSpace,        // \s: White_Space
  kNumber,       // N*
  kUpper,        // Lu, Lt
  kLower,        // Ll
  kLetter,       // Lm, Lo
  kMark,         // M*
  kPunctuation,  // P*
  kSymbol,       // S*
};

/// A set of kinds: of(kUpper, kLower).has(kind).
class KindSet {
 public:
  template <class... Kinds>
  static constexpr KindSet of(Kinds... kinds) {
    return KindSet(static_cast<uint16_t>((0u | ... | (1u << static_cast<unsigned>(kinds)))));
  }
  constexpr bool has(CharKind kind) const { return (bits_ >> static_cast<unsigned>(kind)) & 1; }
  constexpr KindSet operator|(KindSet other) const {
    return KindSet(static_cast<uint16_t>(bits_ | other.bits_));
  }
  constexpr KindSet operator~() const { return KindSet(static_cast<uint16_t>(~bits_ & 0x1FF)); }

 private:
  explicit constexpr KindSet(uint16_t bits) : bits_(bits) {}
  uint16_t bits_;
};

/// How NFC treats a code point. As in Hugging Face tokenizers 0.23, whose NFC is that of an old version of
/// Unicode: characters added later are unchanged.
enum class Composition : uint8_t {
  kNone = 0,     // neither changes nor takes part in a change
  kMayLead = 1,  // may combine with what follows, or is itself composed of parts
  kChanges = 2,  // may change, or combine with or move before what precedes it
};

/// One byte for each code point: see tools/make_unicode_tables.
class CharTraits {
 public:
  explicit constexpr CharTraits(uint8_t bits) : bits_(bits) {}
  constexpr CharKind kind() const { return static_cast<CharKind>(bits_ & 15); }
  constexpr Composition composition() const { return static_cast<Composition>((bits_ >> 4) & 3); }
  /// \w of the regex engine that checks the neighbours of "single_word" tokens.
  constexpr bool is_word() const { return bits_ & 0x40; }
  /// Whether the Digits pre-tokenizer takes it for a number (by a newer Unicode than \p{N}).
  constexpr bool is_digit() const { return bits_ & 0x80; }

 private:
  uint8_t bits_;
};

extern const uint16_t kTraitBlockOf[0x110000 / 64];
extern const uint8_t kTraits[];

/// The traits of an ASCII character. They need no lookup in kTraitBlockOf: the first blocks are those of
/// ASCII.
inline CharTraits ascii_traits(unsigned char c) {
  return CharTraits(kTraits[c]);
}

/// Traits of a code point; kOther above U+10FFFF.
inline CharTraits char_traits(uint32_t code_point) {
  if (code_point > 0x10FFFF) return CharTraits(0);
  return CharTraits(kTraits[kTraitBlockOf[code_point >> 6] << 6 | (code_point & 63)]);
}

/// Unicode's White_Space, as in Rust's char::is_whitespace().
inline bool is_space(uint32_t code_point) {
  return char_traits(code_point).kind() == CharKind::kSpace;
}

/// Python's str.isspace(), which is also what strip() removes: White_Space and four separators more.
inline bool is_python_space(uint32_t code_point) {
  return (code_point >= 0x1C && code_point <= 0x1F) || is_space(code_point);
}

}  // namespace megalith
