#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace megalith {

/// A short part of a text, such as a word: its bytes and their number in one key.
struct PartKey {
  static constexpr size_t kLongest = 31;
  std::array<uint64_t, 4> words;
  bool operator==(const PartKey&) const = default;

  /// The key of the first `bytes` bytes of `text`, which ends at `end` or later.
  static PartKey of(const char* text, size_t bytes, const char* end) {
    PartKey key;
    if (end - text >= static_cast<std::ptrdiff_t>(sizeof key)) {
      std::memcpy(&key, text, sizeof key);
      for (size_t i = 0; i < key.words.size(); ++i) key.words[i] &= kMasks[bytes][i];
    } else {
      key = {};
      std::memcpy(&key, text, bytes);
    }
    key.words[3] |= uint64_t{bytes} << 56;
    return key;
  }
  uint64_t hash() const {
    uint64_t hash = (words[0] ^ words[3]) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29 ^ words[1]) * 0xD6E8FEB86659FD93u;
    return (hash ^ hash >> 29 ^ words[2] ^ words[3]) * 0x9E3779B97F4A7C15u;
  }

 private:
  static constexpr std::array<std::array<uint64_t, 4>, kLongest + 1> kMasks = [] {
    std::array<std::array<uint64_t, 4>, kLongest + 1> masks{};
    for (size_t bytes = 0; bytes <= kLongest; ++bytes)
      for (size_t i = 0; i < bytes; ++i) masks[bytes][i / 8] |= uint64_t{0xFF} << (8 * (i % 8));
    return masks;
  }();
};

}  // namespace megalith
