#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace megalith {

/// The code point at the start of `utf8` (not empty) and its length in bytes. A byte that does not start a
/// whole sequence counts alone, as U+FFFD; nothing is read beyond the end. Overlong forms and surrogates are
/// not checked: the caller passes valid UTF-8.
struct CodePoint {
  uint32_t value;
  size_t bytes;
};
CodePoint code_point_at(std::string_view utf8);

/// The number of bytes of a character of valid UTF-8, by its first byte.
inline size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The characters at the start of `utf8` (valid) that have no more than `max_bytes` bytes together; at least
/// one character, unless `utf8` is empty.
std::string_view first_characters(std::string_view utf8, size_t max_bytes);

}  // namespace megalith
