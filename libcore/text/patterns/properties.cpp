#include "libcore/text/patterns/properties.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace megalith {
namespace {

struct Property {
  std::string_view name;  // in lower case
  size_t first, last;     // its ranges, in kPropertyRanges
};

#include "libcore/text/patterns/property_ranges.inc"

/// All ranges whose property has a name for which `wanted` is true.
template <class Wanted>
CharRanges ranges_of(const Wanted& wanted) {
  std::vector<CharRanges::Range> ranges;
  for (const Property& property : kProperties)
    if (wanted(property.name))
      for (size_t i = property.first; i < property.last; ++i)
        ranges.emplace_back(kPropertyRanges[i][0], kPropertyRanges[i][1]);
  return CharRanges(std::move(ranges));
}

}  // namespace

std::optional<CharRanges> char_property(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const bool is_major = lower.size() == 1;  // a major category: all whose names begin with it
  CharRanges found = ranges_of([&](std::string_view known) {
    return is_major ? known.size() == 2 && known[0] == lower[0] : known == lower;
  });
  if (found.empty()) return std::nullopt;
  return found;
}

CharRanges word_characters(bool outside_of_sets) {
  const CharRanges word = *char_property("word");
  return outside_of_sets ? word | CharRanges({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}) : word;
}

}  // namespace megalith
