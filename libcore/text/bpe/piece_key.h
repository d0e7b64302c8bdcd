#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace megalith {

/// A short piece (1 to kLongest bytes) as two numbers, so that keys are compared without a loop: its bytes
/// and, in the top byte, their number. The key of a longer piece has size kLongest + 1 and is in no table.
struct PieceKey {
  static constexpr size_t kLongest = 15;
  uint64_t low, high;
  size_t size() const { return high >> kLengthShift; }
  /// The piece, valid as long as the key.
  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), size()}; }

  bool operator==(const PieceKey&) const = default;

  static constexpr int kLengthShift = 56;

  /// The key of the `bytes` bytes at `at`. 16 bytes must be readable there, so that no branch is needed.
  static PieceKey of(const char* at, size_t bytes) {
    PieceKey key;
    std::memcpy(&key, at, sizeof key);
    const Mask& mask = kMasks[bytes < 16 ? bytes : 16];
    key.low &= mask.low;
    key.high = (key.high & mask.high) | mask.length;
    return key;
  }
  static PieceKey of(std::string_view piece) {
    char bytes[16] = {};
    std::memcpy(bytes, piece.data(), piece.size() < 16 ? piece.size() : 16);
    return of(bytes, piece.size());
  }

 private:
  struct alignas(32) Mask {
    uint64_t low, high, length;
  };
  static constexpr std::array<Mask, 17> kMasks = [] {
    std::array<Mask, 17> masks{};
    for (size_t size = 0; size <= 16; ++size)
      masks[size] = {.low = size < 8 ? (uint64_t{1} << (8 * size)) - 1 : ~uint64_t{0},
                     .high = size < 8    ? 0
                             : size < 15 ? (uint64_t{1} << (8 * (size - 8))) - 1
                                         : ~uint64_t{0} >> 8,
                     .length = uint64_t{size} << kLengthShift};
    return masks;
  }();
  static_assert(std::endian::native == std::endian::little);
};

}  // namespace megalith
