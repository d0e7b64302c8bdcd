#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// What the normalizers and pre-tokenizers of Hugging Face tokenizers 0.23 do with a character (see
/// tools/make_unicode_tables). Each of them has its own version of Unicode.
class ReferenceChar {
 public:
  explicit constexpr ReferenceChar(uint8_t bits) : bits_(bits) {}
  /// Whether it is in one grapheme cluster with a letter before it, and with one after it.
  constexpr bool joins_letter() const { return bits_ & 1; }
  constexpr bool joins_next_letter() const { return bits_ & 2; }
  constexpr bool is_accent() const { return bits_ & 4; }         // StripAccents removes it
  constexpr bool decomposes() const { return bits_ & 8; }        // NFKD changes it, or orders it among marks
  constexpr bool is_bert_accent() const { return bits_ & 16; }   // BertNormalizer: strip_accents removes it
  constexpr bool is_bert_control() const { return bits_ & 32; }  // and clean_text this
  /// Whether Punctuation and BertPreTokenizer cut it out.
  constexpr bool is_punctuation() const { return bits_ & 64; }

 private:
  uint8_t bits_;
};

ReferenceChar reference_char(uint32_t code_point);  // up to U+10FFFF

/// Appends the Lowercase of `utf8`, which is valid.
void append_reference_lower(std::string_view utf8, std::string& out);

}  // namespace megalith
