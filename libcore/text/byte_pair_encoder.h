#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/huge_pages.h"
#include "libcore/text/character_ids.h"
#include "libcore/text/identity_hash.h"

namespace megalith {

/// What makes one merge come before another: its place in the list (merges.txt), or the id that it gives, so
/// that all ways to one token are alike (tiktoken).
enum class MergeRanks : uint8_t { kOrder, kToken };

/// Byte-pair encoding of one pretoken: starts with one id per byte, then joins the neighbours whose pair has
/// the lowest rank, the leftmost first, until no pair has one. Const and thread-safe.
class BytePairEncoder {
 public:
  struct Merge {
    int32_t left, right, merged;
  };
  /// `merges` in the order of their rank; where a pair stands twice the later one counts (as in Hugging Face
  /// tokenizers). Throws kData when an id or the number of merges is beyond what fits (2^21, 2^22).
  BytePairEncoder(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                  MergeRanks ranks = MergeRanks::kOrder,
                  std::optional<CharacterIds> characters = std::nullopt);  // instead of byte_ids

  /// The merges, in the order of their ranks.
  void add_to(IdentityHash& hash) const;

  /// Replaces `ids` by those of `bytes`.
  void encode(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  static constexpr size_t kShort = 64;
  // A pair's rank, greater than all others when it is not joined. Ranks have 22 bits, ids 21.
  static constexpr int kIdBits = 21, kRankBits = 22;
  static constexpr uint32_t kNoRank = uint32_t{1} << kRankBits;
  // A slot of the table holds a pair above its rank. No id is kNobody, and no pair has a free slot's bits.
  static constexpr int32_t kNobody = (1 << kIdBits) - 1;
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct alignas(32) Bucket {
    std::array<uint64_t, 4> slots;  // filled from the first one on
  };

  static uint64_t pair_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << kIdBits | static_cast<uint32_t>(right);
  }
  size_t place(uint64_t pair) const { return static_cast<size_t>((pair * 0x9E3779B97F4A7C15u) >> shift_); }
  uint32_t rank(int32_t left, int32_t right) const;
  void add(const Merge& merge, uint32_t rank);
  int32_t merged(uint32_t rank) const { return merged_.empty() ? static_cast<int32_t>(rank) : merged_[rank]; }
  size_t merge_short(std::string_view bytes, int32_t* ids, size_t n) const;
  void merge_long(std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_;
  std::optional<CharacterIds> characters_;
  HugePages memory_;
  std::span<Bucket> buckets_;         // a full one is continued in the next
  std::vector<int32_t> merged_;       // by rank; empty: the rank is the id
  std::vector<uint32_t> byte_ranks_;  // of two bytes: first * 256 + second
  int shift_;
};

}  // namespace megalith
