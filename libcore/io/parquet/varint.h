#pragma once

#include <cstdint>
#include <optional>

namespace megalith {

/// Reads a number that is stored seven bits a byte, the lowest first, each byte but the last with its highest
/// bit set (ULEB128). `next()` returns the next byte, or throws where there is none. Nothing if the number
/// does not end after ten bytes, which hold 64 bits.
template <class Next>
std::optional<uint64_t> read_varint(const Next& next) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = next();
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// The signed number that a zigzag code stands for: 0, -1, 1, -2, ...
constexpr int64_t from_zigzag(uint64_t code) {
  return static_cast<int64_t>(code >> 1) ^ -static_cast<int64_t>(code & 1);
}

}  // namespace megalith
