#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/base/shared_array.h"
#include "libcore/text/bpe/byte_pair_encoder.h"
#include "libcore/text/bpe/token_texts.h"

namespace megalith {

/// Finds borders: places in a piece that no merge can join across, so that encoding both sides separately
/// gives the same ids. A run of Chinese is one pretoken that hardly ever recurs as a whole, but the parts
/// between its borders do.
class MergeBorders {
 public:
  /// `tokens`: the bytes of each token, by id.
  MergeBorders(const TokenTexts& tokens, std::span<const BytePairEncoder::Merge> merges);

  /// The tables in which parts() and joins() look up.
  struct Arrays {
    SharedArray<uint16_t> ways;   // indexed by the bytes next to a border; has a bit for each way that exists
    SharedArray<uint64_t> known;  // a bit for the hash of each merge's bytes
    SharedArray<uint8_t> doubts;  // see doubts()
  };
  const Arrays& arrays() const { return arrays_; }
  /// Reuses another instance's arrays (those of a mapped cache file).
  explicit MergeBorders(Arrays arrays);
  static bool fit(const Arrays& arrays);

  /// Whether byte `at` of `piece` (not the first) begins a character outside ASCII that no merge can join to
  /// the bytes before it. May be false although no merge can, since merges are recognized by a hash of a few
  /// bytes.
  bool parts(std::string_view piece, size_t at) const {
    return static_cast<uint8_t>(piece[at]) >= 0xC0 && !joins(piece, at);
  }
  /// Whether a merge may join the character outside ASCII that begins at `at` (not 0) to the bytes before it.
  bool joins(std::string_view piece, size_t at) const;

  /// Indexed by the byte before a character outside ASCII. If bit (lead byte & 7) of the element is clear,
  /// joins() is false for that character.
  std::span<const uint8_t, 256> doubts() const { return arrays_.doubts.span().first<256>(); }

 private:
  // A merge is recognized by the last bytes of its left token and the first of its right one, up to kBytes
  // each. A "way" is a pair of such byte counts.
  static constexpr size_t kBytes = 3;
  static constexpr size_t kWays = kBytes * kBytes;
  /// The bytes nearest to a place, the nearest in the lowest bits: the low 24 bits hold those after it, the
  /// next 24 bits those before it.
  static uint64_t bytes_around(std::string_view piece, size_t at);
  uint64_t hash(uint64_t around, size_t way) const;

  Arrays arrays_;
  int shift_ = 63;
};

}  // namespace megalith
