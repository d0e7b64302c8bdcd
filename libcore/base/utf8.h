#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// Whether this byte of UTF-8 is not the first one of its character.
inline bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}
/// Where the character begins that contains byte `at` of `utf8`.
inline size_t character_begin(std::string_view utf8, size_t at) {
  while (at > 0 && continues_character(utf8[at])) --at;
  return at;
}

/// Length in bytes of the valid UTF-8 sequence at the start of `bytes` (no surrogate, no overlong form, <=
/// U+10FFFF); 0 if there is none.
size_t utf8_sequence(std::string_view bytes);
/// Length of the longest prefix of `bytes` that is valid UTF-8. Reads all of `bytes` once, at the speed of
/// memory, so a loop over bad bytes should call utf8_sequence() instead.
size_t valid_utf8_prefix(std::string_view bytes);
/// Code points of valid UTF-8.
int64_t count_code_points(std::string_view utf8);
/// Writes the 1 to 4 bytes of a code point and returns the end; room for 4.
char* write_utf8(char* out, uint32_t code_point);
void append_utf8(std::string& out, uint32_t code_point);
/// `bytes` with U+FFFD for what is not valid UTF-8: one for each maximal part of a sequence, else one for
/// each byte (the Unicode standard's "substitution of maximal subparts", as in Python's errors="replace").
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace megalith
