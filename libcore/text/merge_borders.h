#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/byte_pair_encoder.h"

namespace megalith {

/// Knows where no merge can join what stands on both sides, so that the sides can be encoded apart with the
/// same result. A run of Chinese is one pretoken that hardly ever comes again, but its parts do.
class MergeBorders {
 public:
  /// `tokens`: bytes by id.
  MergeBorders(std::span<const std::string> tokens, std::span<const BytePairEncoder::Merge> merges);

  /// Whether byte `at` of `piece` (not the first) begins a character outside ASCII that no merge can join to
  /// what is before it. May be false where none can.
  bool parts(std::string_view piece, size_t at) const {
    const auto first = static_cast<uint8_t>(piece[at]);
    if (first < 0xC0) return false;
    const uint16_t ways = ways_[static_cast<uint8_t>(piece[at - 1]) * size_t{64} + (first & 63)];
    return ways == 0 || !joins(piece, at, ways);
  }

 private:
  // A merge is known by the last bytes of its left token and the first of its right one, up to kBytes each: a
  // "way" is such a pair of numbers of bytes.
  static constexpr size_t kBytes = 3;
  static constexpr int way(size_t left, size_t right) {
    return static_cast<int>((left - 1) * kBytes + right - 1);
  }
  static uint64_t hash(std::string_view left, std::string_view right);
  bool joins(std::string_view piece, size_t at, uint16_t ways) const;

  std::vector<uint16_t> ways_;   // by the bytes on both sides: which ways there are
  std::vector<uint64_t> known_;  // a bit for the hash of each merge's bytes
  int shift_ = 63;
};

}  // namespace megalith
