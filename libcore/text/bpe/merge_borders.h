#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libcore/base/shared_array.h"
#include "libcore/text/bpe/byte_pair_encoder.h"
#include "libcore/text/bpe/token_texts.h"

namespace megalith {

/// Knows where no merge can join what stands on both sides, so that the sides can be encoded apart with the
/// same result. A run of Chinese is one pretoken that hardly ever comes again, but its parts do.
class MergeBorders {
 public:
  /// `tokens`: bytes by id.
  MergeBorders(const TokenTexts& tokens, std::span<const BytePairEncoder::Merge> merges);

  /// What it works with.
  struct Arrays {
    SharedArray<uint16_t> ways;   // by the bytes on both sides: which ways there are
    SharedArray<uint64_t> known;  // a bit for the hash of each merge's bytes
    SharedArray<uint8_t> doubts;  // see doubts()
  };
  const Arrays& arrays() const { return arrays_; }
  /// Reuses another instance's arrays (those of a mapped cache file).
  explicit MergeBorders(Arrays arrays);
  static bool fit(const Arrays& arrays);

  /// Whether byte `at` of `piece` (not the first) begins a character outside ASCII that no merge can join to
  /// what is before it. May be false where none can, because merges are known by a hash of a few bytes.
  bool parts(std::string_view piece, size_t at) const {
    return static_cast<uint8_t>(piece[at]) >= 0xC0 && !joins(piece, at);
  }
  /// Whether a merge may join the character outside ASCII that begins at `at` (not 0) to what is before it.
  bool joins(std::string_view piece, size_t at) const;

  /// By the byte before a character outside ASCII: joins() is false for each character whose first byte's
  /// lowest three bits make the number of a bit that is not set here.
  std::span<const uint8_t, 256> doubts() const { return arrays_.doubts.span().first<256>(); }

 private:
  // A merge is known by the last bytes of its left token and the first of its right one, up to kBytes each: a
  // "way" is such a pair of numbers of bytes.
  static constexpr size_t kBytes = 3;
  static constexpr size_t kWays = kBytes * kBytes;
  /// The bytes that are nearest to a place, the nearest lowest: 24 bits after it, above them 24 before it.
  static uint64_t bytes_around(std::string_view piece, size_t at);
  uint64_t hash(uint64_t around, size_t way) const;

  Arrays arrays_;
  int shift_ = 63;
};

}  // namespace megalith
