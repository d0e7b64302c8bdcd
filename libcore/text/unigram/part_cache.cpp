#include "libcore/text/unigram/part_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr double kNoOther = std::numeric_limits<double>::infinity();

/// The best way to a place in a part.
struct Place {
  double sum = 0;
  double margin = kNoOther;  // how much better it is than the next best last token
  size_t bytes = 0;          // of its last token; 0: no way leads here
  int32_t id = -1;           // of that token
};

}  // namespace

/// Cuts a part with sums from 0. Nothing if the cut cannot be kept.
std::optional<PartCut> PartCache::make(std::string_view part) const {
  std::array<Place, PartKey::kLongest + 1> places{};
  const auto offer = [&](size_t end, size_t bytes, double sum, int32_t id) {
    Place& place = places[end];
    if (place.bytes == 0)
      place = {sum, kNoOther, bytes, id};
    else if (sum > place.sum)
      place = {sum, sum - place.sum, bytes, id};
    else
      place.margin = std::min(place.margin, place.sum - sum);
  };
  size_t characters = 0;
  double largest = std::abs(rules_.unknown_score);
  for (size_t at = 0; at < part.size(); ++characters) {
    const size_t character = std::min(character_bytes(part[at]), part.size() - at);
    bool is_known = false;
    trie_.each(part.substr(at), [&](size_t bytes, int32_t id) {
      const double score = tables_.score(id);
      largest = std::max(largest, std::abs(score));
      offer(at + bytes, bytes, score + places[at].sum, id);
      is_known = is_known || bytes == character;
    });
    if (!is_known) offer(at + character, character, rules_.unknown_score + places[at].sum, rules_.unknown);
    at += character;
  }
  PartCut cut;
  double margin = kNoOther;
  for (size_t end = part.size(); end > 0; end -= places[end].bytes) {
    if (places[end].id == rules_.unknown || cut.count == PartCut::kMostIds) return std::nullopt;
    margin = std::min(margin, places[end].margin);
    cut.ids[cut.count++] = places[end].id;
  }
  std::reverse(cut.ids.begin(), cut.ids.begin() + cut.count);
  // Each of the two sums that are compared has been rounded once for each character before it, at most.
  const auto roundings = 2 * static_cast<double>(characters + 1);
  cut.margin = static_cast<float>(margin / roundings * 0.999);
  cut.bound = static_cast<float>(static_cast<double>(characters) * largest * 1.001);
  return cut;
}

}  // namespace megalith
