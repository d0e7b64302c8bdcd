#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// What NLTK's Punkt needs to know about a character, as Python 3.11's str and the regex module define it
/// (see tools/make_unicode_tables).
class PunktChar {
 public:
  explicit constexpr PunktChar(uint8_t bits) : bits_(bits) {}
  constexpr bool is_digit() const { return bits_ & 1; }   // \d
  constexpr bool is_letter() const { return bits_ & 2; }  // [^\W\d]: also a mark or an underscore
  constexpr bool is_upper() const { return bits_ & 4; }   // str.isupper()
  constexpr bool is_lower() const { return bits_ & 8; }   // str.islower()
  /// Whether str.lower() skips it when it looks for a cased letter on both sides of a capital sigma; and
  /// whether it is such a letter (a sigma with one before it and none after it is a final sigma).
  constexpr bool is_passed_by_sigma() const { return bits_ & 16; }
  constexpr bool is_cased() const { return bits_ & 32; }

 private:
  uint8_t bits_;
};

PunktChar punkt_char(uint32_t code_point);  // up to U+10FFFF

/// Appends Python's str.lower() of `utf8`, which is valid.
void append_lower(std::string_view utf8, std::string& out);

}  // namespace megalith
