#include "libcore/text/bpe/cache/whole_tokens.h"

#include <algorithm>
#include <bit>

namespace megalith {

WholeTokens::WholeTokens(const WholeTokenIds& ids) : ids_(ids) {
  if (ids.empty()) return;
  bits_.resize(std::bit_ceil(ids.size()));  // 64 bits for each token
  hash_.shift = 64 - std::countr_zero(bits_.size() * 64);
  for (const auto& [text, id] : ids) {
    const size_t at = hash_(PieceKey::of(text));
    bits_[at / 64] |= uint64_t{1} << (at % 64);
  }
}

bool WholeTokens::has(std::string_view text, uint32_t begin, uint32_t end) const {
  const PieceKey key = begin + sizeof(PieceKey) <= text.size()
                           ? PieceKey::of(text.data() + begin, end - begin)
                           : PieceKey::of(text.substr(begin, end - begin));
  const size_t at = hash_(key);
  return (bits_[at / 64] >> (at % 64) & 1) != 0 && ids_.contains(text.substr(begin, end - begin));
}

bool WholeTokens::has_any(std::string_view text, uint32_t begin, std::span<const uint32_t> pieces) const {
  if (has(text, begin, pieces.back())) return true;
  return std::any_of(pieces.begin(), pieces.end(), [&](uint32_t end) {
    const bool found = has(text, begin, end);
    begin = end;
    return found;
  });
}

size_t WholeTokens::join(std::string_view text, std::span<const uint32_t> ends,
                         std::span<uint32_t> pieces) const {
  if (ids_.empty()) return pieces.size();
  size_t from = 0, to = 0;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    size_t after = from + 1;
    while (pieces[after - 1] != end) ++after;
    const size_t parts = after - from;
    if (parts > 1 && has_any(text, begin, pieces.subspan(from, parts))) from = after - 1;
    while (from < after) pieces[to++] = pieces[from++];
    begin = end;
  }
  return to;
}

}  // namespace megalith
