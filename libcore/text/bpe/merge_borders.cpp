#include "libcore/text/bpe/merge_borders.h"

#include <algorithm>
#include <bit>
#include <string>

namespace megalith {
namespace {

constexpr size_t kLeads = 64;  // bytes from 0xC0 on: all that begin a character outside ASCII

size_t lead_number(char c) {
  return static_cast<uint8_t>(c) % kLeads;
}

}  // namespace

MergeBorders::MergeBorders(const TokenTexts& tokens, std::span<const BytePairEncoder::Merge> merges) {
  std::vector<uint16_t> ways(256 * kLeads);
  std::vector<uint8_t> doubts(256);
  struct Join {
    uint64_t around;
    size_t way;
  };
  std::vector<Join> joins;
  for (const BytePairEncoder::Merge& merge : merges) {
    const std::string_view left = tokens[static_cast<size_t>(merge.left)];
    const std::string_view right = tokens[static_cast<size_t>(merge.right)];
    if (left.empty() || right.empty() || static_cast<uint8_t>(right[0]) < 0xC0) continue;
    const size_t way = (std::min(left.size(), kBytes) - 1) * kBytes + std::min(right.size(), kBytes) - 1;
    const auto before = static_cast<uint8_t>(left.back());
    ways[before * kLeads + lead_number(right[0])] |= static_cast<uint16_t>(1 << way);
    doubts[before] |= static_cast<uint8_t>(1 << lead_number(right[0]) % 8);
    joins.push_back({bytes_around(std::string(left).append(right), left.size()), way});
  }
  const size_t bits = std::bit_ceil(64 + 16 * joins.size());
  std::vector<uint64_t> known(bits / 64);
  shift_ = 64 - std::countr_zero(bits);
  for (const Join& join : joins) {
    const uint64_t h = hash(join.around, join.way);
    known[h / 64] |= uint64_t{1} << (h % 64);
  }
  arrays_ = {SharedArray(std::move(ways)), SharedArray(std::move(known)), SharedArray(std::move(doubts))};
}

MergeBorders::MergeBorders(Arrays arrays)
    : arrays_(std::move(arrays)), shift_(64 - std::countr_zero(arrays_.known.size() * 64)) {}

bool MergeBorders::fit(const Arrays& arrays) {
  return arrays.ways.size() == 256 * kLeads && std::has_single_bit(arrays.known.size()) &&
         arrays.doubts.size() == 256;
}

uint64_t MergeBorders::bytes_around(std::string_view piece, size_t at) {
  const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(piece[i])}; };
  uint64_t around = 0;
  for (size_t i = 0; i < kBytes; ++i) {
    if (at + i < piece.size()) around |= byte(at + i) << (8 * i);
    if (i < at) around |= byte(at - 1 - i) << (8 * (kBytes + i));
  }
  return around;
}

/// The index of a bit of `known`.
uint64_t MergeBorders::hash(uint64_t around, size_t way) const {
  const auto low = [](size_t bytes) { return (uint64_t{1} << (8 * bytes)) - 1; };
  const uint64_t mask = low(way / kBytes + 1) << (8 * kBytes) | low(way % kBytes + 1);
  return ((around & mask) | uint64_t{way} << (16 * kBytes)) * 0x9E3779B97F4A7C15u >> shift_;
}

bool MergeBorders::joins(std::string_view piece, size_t at) const {
  const auto before = static_cast<uint8_t>(piece[at - 1]);
  uint32_t ways = arrays_.ways[before * kLeads + lead_number(piece[at])];
  if (ways == 0) return false;
  const uint64_t around = bytes_around(piece, at);
  for (; ways != 0; ways &= ways - 1) {
    const auto way = static_cast<size_t>(std::countr_zero(ways));
    if (way / kBytes >= at || way % kBytes >= piece.size() - at) continue;
    const uint64_t bit = hash(around, way);
    if ((arrays_.known[bit / 64] >> (bit % 64) & 1) != 0) return true;
  }
  return false;
}

}  // namespace megalith
