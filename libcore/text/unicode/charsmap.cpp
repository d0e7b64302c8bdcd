#include "libcore/text/unicode/charsmap.h"

#include <cstring>

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr size_t kMostRules = 32;  // SentencePiece looks at no more matches

// A unit of a double array (darts-clone, darts.h).
uint32_t label_of(uint32_t unit) {
  return unit & (uint32_t{1} << 31 | 0xFF);
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (uint32_t{1} << 9)) >> 6);
}
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t value_of(uint32_t unit) {
  return unit & ~(uint32_t{1} << 31);
}

}  // namespace

/// Walks from the root of a double array. The array may be damaged, so each step is checked.
class Charsmap::Walk {
 public:
  explicit Walk(const std::vector<uint32_t>& units) : units_(units), at_(offset_of(units[0])) {}

  /// Follows a byte; false if no rule continues with it.
  bool step(uint8_t byte) {
    at_ ^= byte;
    if (at_ >= units_.size() || label_of(units_[at_]) != byte) return false;
    const uint32_t unit = units_[at_];
    at_ ^= offset_of(unit);
    has_value_ = has_leaf(unit) && at_ < units_.size();
    return true;
  }
  bool has_value() const { return has_value_; }
  uint32_t value() const { return value_of(units_[at_]); }

 private:
  const std::vector<uint32_t>& units_;
  size_t at_;
  bool has_value_ = false;
};

/// The charsmap consists of the size of the double array in bytes, the array and the replacements.
Charsmap::Charsmap(std::string_view map, const std::string& where) : where_(where) {
  if (map.empty()) return;
  uint32_t bytes = 0;
  if (map.size() > sizeof bytes) std::memcpy(&bytes, map.data(), sizeof bytes);
  if (bytes < sizeof(uint32_t) || bytes > map.size() - sizeof bytes)
    fail(ErrorKind::kData, where, ": the charsmap of its normalizer is damaged: ", map.size(),
         " bytes, of which a table takes ", bytes, "; get the model again");
  trie_.resize(bytes / sizeof(uint32_t));
  std::memcpy(trie_.data(), map.data() + sizeof bytes, trie_.size() * sizeof(uint32_t));
  replacements_ = map.substr(sizeof bytes + bytes);
  for (size_t c = 0; c < may_change_.size(); ++c) may_change_[c] = may_change(static_cast<uint8_t>(c));
}

bool Charsmap::may_change(uint8_t ascii) const {
  Walk walk(trie_);
  if (!walk.step(ascii)) return false;
  if (walk.has_value()) return true;
  for (size_t next = 0; next < may_change_.size(); ++next)
    if (Walk(walk).step(static_cast<uint8_t>(next))) return true;
  return false;
}

std::string_view Charsmap::replacement(uint32_t value) const {
  if (value >= replacements_.size())
    fail(ErrorKind::kData, where_, ": the charsmap of its normalizer is damaged: a rule names byte ", value,
         " of ", replacements_.size(), "; get the model again");
  const std::string_view text = std::string_view(replacements_).substr(value);
  return text.substr(0, text.find('\0'));
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view utf8) const {
  if (trie_.empty()) return std::nullopt;
  Walk walk(trie_);
  size_t longest = 0, found = 0;
  uint32_t value = 0;
  for (size_t i = 0; i < utf8.size() && found < kMostRules && walk.step(static_cast<uint8_t>(utf8[i])); ++i)
    if (walk.has_value()) {
      longest = i + 1;
      value = walk.value();
      ++found;
    }
  if (longest == 0) return std::nullopt;
  return Match{replacement(value), longest};
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view utf8) const {
  if (trie_.empty()) return std::nullopt;
  Walk walk(trie_);
  for (size_t i = 0; i < utf8.size() && utf8[i] != '\0' && walk.step(static_cast<uint8_t>(utf8[i])); ++i)
    if (walk.has_value()) return Match{replacement(walk.value()), i + 1};
  return std::nullopt;
}

}  // namespace megalith
