#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// U+FEFF, with which a file may begin.
inline constexpr std::string_view kUtf8ByteOrderMark = "\xEF\xBB\xBF";

/// Whether a byte of UTF-8 is a continuation byte, that is, not the first byte of its character.
inline bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}
/// The offset of the first byte of the character that contains byte `at` of `utf8`.
inline size_t character_begin(std::string_view utf8, size_t at) {
  while (at > 0 && continues_character(utf8[at])) --at;
  return at;
}

/// Length in bytes of the valid UTF-8 sequence at the start of `bytes` (no surrogate, no overlong form, <=
/// U+10FFFF); 0 if there is none.
size_t utf8_sequence(std::string_view bytes);
/// Length of the longest prefix of `bytes` that is valid UTF-8. Each call reads all of `bytes`, at the speed
/// of memory: a loop that skips bad bytes one by one should call utf8_sequence() instead.
size_t valid_utf8_prefix(std::string_view bytes);
/// The number of code points in `utf8`, which must be valid.
int64_t count_code_points(std::string_view utf8);
/// Writes a code point as 1 to 4 bytes and returns the end of them. `out` must have room for 4.
char* write_utf8(char* out, uint32_t code_point);
void append_utf8(std::string& out, uint32_t code_point);
/// Replaces invalid UTF-8 in `bytes` by U+FFFD. A valid sequence that ends too early is
/// replaced as a whole, every other invalid byte by itself (the Unicode standard's "substitution of maximal
/// subparts", as in Python's errors="replace").
std::string replace_invalid_utf8(std::string_view bytes);

}  // namespace megalith
