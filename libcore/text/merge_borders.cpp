#include "libcore/text/merge_borders.h"

#include <algorithm>
#include <bit>

namespace megalith {

MergeBorders::MergeBorders(std::span<const std::string> tokens,
                           std::span<const BytePairEncoder::Merge> merges)
    : ways_(256 * 64) {
  std::vector<uint64_t> hashes;
  for (const BytePairEncoder::Merge& merge : merges) {
    const std::string_view left = tokens[static_cast<size_t>(merge.left)];
    const std::string_view right = tokens[static_cast<size_t>(merge.right)];
    if (left.empty() || right.empty() || static_cast<uint8_t>(right[0]) < 0xC0) continue;
    const size_t l = std::min(left.size(), kBytes), r = std::min(right.size(), kBytes);
    ways_[static_cast<uint8_t>(left.back()) * size_t{64} + (static_cast<uint8_t>(right[0]) & 63)] |=
        static_cast<uint16_t>(1 << way(l, r));
    hashes.push_back(hash(left.substr(left.size() - l), right.substr(0, r)));
  }
  const size_t bits = std::bit_ceil(64 + 16 * hashes.size());
  known_.resize(bits / 64);
  shift_ = 64 - std::countr_zero(bits);
  for (const uint64_t h : hashes) known_[(h >> shift_) / 64] |= uint64_t{1} << ((h >> shift_) % 64);
}

uint64_t MergeBorders::hash(std::string_view left, std::string_view right) {
  uint64_t bytes = left.size() * 4 + right.size();
  for (char c : left) bytes = bytes << 8 | static_cast<uint8_t>(c);
  for (char c : right) bytes = bytes << 8 | static_cast<uint8_t>(c);
  return bytes * 0x9E3779B97F4A7C15u;
}

bool MergeBorders::joins(std::string_view piece, size_t at, uint16_t ways) const {
  for (size_t l = 1; l <= std::min(kBytes, at); ++l)
    for (size_t r = 1; r <= std::min(kBytes, piece.size() - at); ++r) {
      if ((ways >> way(l, r) & 1) == 0) continue;
      const uint64_t bit = hash(piece.substr(at - l, l), piece.substr(at, r)) >> shift_;
      if ((known_[bit / 64] >> (bit % 64) & 1) != 0) return true;
    }
  return false;
}

}  // namespace megalith
