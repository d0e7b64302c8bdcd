#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libcore/text/bpe/cache/piece_cache.h"

namespace megalith {

/// Pretokens that become one token without merging, and their ids.
using WholeTokenIds = std::unordered_map<std::string_view, int32_t>;

/// Undoes cuts of pretokens where merging is not all that counts: the token cache holds for each text the ids
/// that it has as a pretoken. So a pretoken that is such a token must not be cut, and neither must one with a
/// part that is, since as a part it has other ids. Both are rare: LLaMA-3 has 588 such tokens of 128,256.
class WholeTokens {
 public:
  /// Keeps a reference to `ids`.
  explicit WholeTokens(const WholeTokenIds& ids);

  /// `ends`: where pretokens of `text` end, from its beginning. `pieces`: where the parts of these pretokens
  /// end. Removes the ends of parts of pretokens that must not be cut, and returns how many ends are left.
  size_t join(std::string_view text, std::span<const uint32_t> ends, std::span<uint32_t> pieces) const;

 private:
  bool has(std::string_view text, uint32_t begin, uint32_t end) const;
  bool has_any(std::string_view text, uint32_t begin, std::span<const uint32_t> pieces) const;

  const WholeTokenIds& ids_;
  std::vector<uint64_t> bits_;  // a bit for the hash of each token's key; saves almost every look into ids_
  PieceTable::Hash hash_{};
};

}  // namespace megalith
