#include "libcore/text/patterns/char_ranges.h"

#include <algorithm>

namespace megalith {

CharRanges::CharRanges(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (const Range& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().second + 1)
      ranges_.back().second = std::max(ranges_.back().second, range.second);
    else
      ranges_.push_back(range);
  }
}

CharRanges CharRanges::operator|(const CharRanges& other) const {
  std::vector<Range> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CharRanges(std::move(both));
}

CharRanges CharRanges::operator~() const {
  CharRanges out;
  uint32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) out.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) out.ranges_.emplace_back(next, kLast);
  return out;
}

CharRanges CharRanges::operator&(const CharRanges& other) const {
  return ~(~*this | ~other);
}

bool CharRanges::has(uint32_t code_point) const {
  const auto range = std::lower_bound(ranges_.begin(), ranges_.end(), code_point,
                                      [](const Range& r, uint32_t wanted) { return r.second < wanted; });
  return range != ranges_.end() && range->first <= code_point;
}

}  // namespace megalith
