#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "libcore/text/part_key.h"
#include "libcore/text/unigram/unigram_model.h"

namespace megalith {

/// How a part is cut, and for which sums before it that is certain.
///
/// The reference adds up rounded sums along the whole text, so the same part may be cut in another way after
/// another sum. Each rounding changes a sum by at most half a unit in the last place of the largest sum. So
/// if the best way to cut a part is better than every other by more than all roundings in the part can make
/// up for, it is the best way after any sum for which that is true.
struct PartCut {
  static constexpr size_t kMostIds = 5;
  PartKey key{};       // all zero: free
  float margin = 0;    // how much better the best way is, for each sum that is rounded
  float bound = 0;     // no sum within the part differs more from the one before it
  uint32_t count = 0;  // of ids
  std::array<int32_t, kMostIds> ids{};
};
static_assert(sizeof(PartCut) == 64);

/// The parts that one thread has cut lately.
class PartCache {
 public:
  /// Keeps references to both.
  PartCache(const UnigramTables& tables, const UnigramRules& rules)
      : cuts_(kCuts), trie_(tables.trie), tables_(tables), rules_(rules) {}

  /// The cut of the first `bytes` bytes (at most PartKey::kLongest) of `text`. Null if it has an unknown
  /// character or more than kMostIds ids.
  const PartCut* find(std::string_view text, size_t bytes) {
    const PartKey key = PartKey::of(text.data(), bytes, text.data() + text.size());
    PartCut& cut = cuts_[key.hash() >> (64 - kBits)];
    if (cut.key == key) [[likely]]
      return &cut;
    std::optional<PartCut> made = make(text.substr(0, bytes));
    if (!made) return nullptr;
    made->key = key;
    cut = *made;
    return &cut;
  }

 private:
  static constexpr int kBits = 16;
  static constexpr size_t kCuts = size_t{1} << kBits;
  std::optional<PartCut> make(std::string_view part) const;

  std::vector<PartCut> cuts_;
  PrefixTrie trie_;
  const UnigramTables& tables_;
  const UnigramRules& rules_;
};

}  // namespace megalith
