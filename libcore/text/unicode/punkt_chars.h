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
  /// To lower a capital sigma, str.lower() looks on both sides for the nearest character that it does not
  /// pass over. If that is a cased letter before the sigma and none after it, the sigma becomes a final
  /// sigma. is_passed_by_sigma(): whether the search passes over this character. is_cased(): whether it is a
  /// cased letter.
  constexpr bool is_passed_by_sigma() const { return bits_ & 16; }
  constexpr bool is_cased() const { return bits_ & 32; }

 private:
  uint8_t bits_;
};

PunktChar punkt_char(uint32_t code_point);  // up to U+10FFFF

/// Appends Python's str.lower() of `utf8`, which is valid.
void append_lower(std::string_view utf8, std::string& out);

}  // namespace megalith
