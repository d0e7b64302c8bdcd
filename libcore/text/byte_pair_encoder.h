#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/text/character_ids.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/pair_map.h"

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
  /// tokenizers).
  BytePairEncoder(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                  MergeRanks ranks = MergeRanks::kOrder,
                  std::optional<CharacterIds> characters = std::nullopt);  // instead of byte_ids

  /// The merges, in the order of their ranks.
  void add_to(IdentityHash& hash) const;

  /// Replaces `ids` by those of `bytes`.
  void encode(std::string_view bytes, std::vector<int32_t>& ids) const;

 private:
  struct Target {
    uint32_t rank = kNoRank;
    int32_t merged = -1;
  };
  static constexpr uint32_t kNoRank = ~uint32_t{0};

  Target target(int32_t left, int32_t right) const;
  void merge_short(std::vector<int32_t>& ids) const;
  void merge_long(std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_;
  std::optional<CharacterIds> characters_;
  PairMap<Target> targets_;
};

}  // namespace megalith
