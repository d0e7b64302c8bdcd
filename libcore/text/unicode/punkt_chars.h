#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// What NLTK's Punkt asks of a character, as Python 3.11's str and the regex module answer (see
/// tools/make_unicode_tables).
class PunktChar {
 public:
  explicit constexpr PunktChar(uint8_t bits) : bits_(bits) {}
  constexpr bool is_digit() const { return bits_ & 1; }   // \d
  constexpr bool is_letter() const { return bits_ & 2; }  // [^\W\d]: also a mark or an underscore
  constexpr bool is_upper() const { return bits_ & 4; }   // str.isupper()
  constexpr bool is_lower() const { return bits_ & 8; }   // str.islower()
  /// Whether str.lower() looks past it, to both sides of a capital sigma, for a cased letter; and whether it
  /// is one (then with a letter before it and none after it, the sigma is a final one).
  constexpr bool is_passed_by_sigma() const { return bits_ & 16; }
  constexpr bool is_cased() const { return bits_ & 32; }

 private:
  uint8_t bits_;
};

PunktChar punkt_char(uint32_t code_point);  // up to U+10FFFF

/// Appends what Python's str.lower() makes of `utf8`, which is valid.
void append_lower(std::string_view utf8, std::string& out);

}  // namespace megalith
