#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

// Byte tokens ("<0x41>") in texts that are joined before their bytes are decoded: a run of them may be one
// character. Each is kByteMark, which no valid UTF-8 contains, and a letter for each half of the byte, which
// may be any.
constexpr char kByteMark = '\xFF';

inline std::string marked_byte(uint8_t byte) {
  return {kByteMark, static_cast<char>('a' + byte / 16), static_cast<char>('a' + byte % 16)};
}

/// Removes the marked bytes at the beginning of `text`, and assigns the bytes that they stand for to `bytes`.
/// `text` consists of whole marked bytes and of texts without kByteMark.
inline void take_marked_bytes(std::string_view& text, std::string& bytes) {
  constexpr size_t kMarkedBytes = 3;
  for (bytes.clear(); text.starts_with(kByteMark); text.remove_prefix(kMarkedBytes))
    bytes += static_cast<char>((text[1] - 'a') * 16 + (text[2] - 'a'));
}

}  // namespace megalith
