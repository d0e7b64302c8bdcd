#include "libcore/text/formats/sentencepiece/sentencepiece_normalizer.h"

#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr size_t kMostRules = 32;                          // the library looks at no more matches

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

/// A walk from the root of a double array. The array may be damaged, so each step is checked.
class Walk {
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

std::vector<AddedToken> tokens_of(const std::vector<std::string>& texts) {
  std::vector<AddedToken> tokens;
  for (const std::string& text : texts) tokens.push_back({.text = text});
  return tokens;
}

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(Settings settings, const std::string& where)
    : settings_(std::move(settings)), where_(where), user_defined_(tokens_of(settings_.user_defined)) {
  read_charsmap(where);
  changes_nothing_ = trie_.empty() && !settings_.rules.remove_extra_spaces;
  for (uint8_t c = 0; c < plain_.size(); ++c) plain_[c] = is_plain(c);
}

/// The charsmap consists of the size of the double array in bytes, the array and the replacements.
void SentencePieceNormalizer::read_charsmap(const std::string& where) {
  const std::string& map = settings_.rules.charsmap;
  if (map.empty()) return;
  uint32_t bytes = 0;
  if (map.size() > sizeof bytes) std::memcpy(&bytes, map.data(), sizeof bytes);
  if (bytes < sizeof(uint32_t) || bytes > map.size() - sizeof bytes)
    fail(ErrorKind::kData, where, ": the charsmap of its normalizer is damaged: ", map.size(),
         " bytes, of which a table takes ", bytes, "; get the model again");
  trie_.resize(bytes / sizeof(uint32_t));
  std::memcpy(trie_.data(), map.data() + sizeof bytes, trie_.size() * sizeof(uint32_t));
  replacements_ = map.substr(sizeof bytes + bytes);
}

/// Whether the character stays as it is before any other ASCII character: no rule is for it alone or begins
/// with two such characters, and no user-defined text begins with it.
bool SentencePieceNormalizer::is_plain(uint8_t ascii) const {
  if (user_defined_.may_begin(static_cast<char>(ascii))) return false;
  if (trie_.empty()) return true;
  Walk walk(trie_);
  if (!walk.step(ascii)) return true;
  if (walk.has_value()) return false;
  for (uint8_t next = 0; next < plain_.size(); ++next)
    if (Walk(walk).step(next)) return false;
  return true;
}

SentencePieceNormalizer::Prefix SentencePieceNormalizer::prefix(std::string_view utf8) const {
  if (const size_t bytes = user_defined_.longest_at(utf8); bytes > 0) return {utf8.substr(0, bytes), bytes};
  if (!trie_.empty()) {
    Walk walk(trie_);
    size_t longest = 0, found = 0;
    uint32_t value = 0;
    for (size_t i = 0; i < utf8.size() && found < kMostRules && walk.step(static_cast<uint8_t>(utf8[i])); ++i)
      if (walk.has_value()) {
        longest = i + 1;
        value = walk.value();
        ++found;
      }
    if (longest > 0) {
      if (value >= replacements_.size())
        fail(ErrorKind::kData, where_, ": the charsmap of its normalizer is damaged: a rule names byte ",
             value, " of ", replacements_.size(), "; get the model again");
      const std::string_view text = std::string_view(replacements_).substr(value);
      return {text.substr(0, text.find('\0')), longest};
    }
  }
  const size_t bytes = utf8_sequence(utf8);
  return bytes > 0 ? Prefix{utf8.substr(0, bytes), bytes} : Prefix{kReplacement, 1};
}

bool SentencePieceNormalizer::Run::next(size_t bytes, std::string& out) {
  if (!started_) {
    started_ = true;
    start(out);
  }
  if (owner_.changes_nothing_) {
    const std::string_view some = first_characters(rest_, bytes);
    copy(some, out);
    rest_.remove_prefix(some.size());
  } else {
    const size_t left = rest_.size() > bytes ? rest_.size() - bytes : 0;
    while (rest_.size() > left) {
      if (copy_plain(out)) continue;
      const Prefix prefix = owner_.prefix(rest_);
      std::string_view text = prefix.text;
      while (after_space_ && text.starts_with(' ')) text.remove_prefix(1);
      if (!text.empty()) {
        take(text, out);
        after_space_ = owner_.settings_.rules.remove_extra_spaces && text.ends_with(' ');
      }
      rest_.remove_prefix(prefix.bytes);
    }
  }
  if (!rest_.empty()) return true;
  finish(out);
  return false;
}

/// Removes the blanks before the text and adds the one that the model wants there.
void SentencePieceNormalizer::Run::start(std::string& out) {
  const auto& settings = owner_.settings_;
  if (settings.rules.remove_extra_spaces)
    while (!rest_.empty()) {
      const Prefix prefix = owner_.prefix(rest_);
      if (prefix.text != " ") break;
      rest_.remove_prefix(prefix.bytes);
    }
  after_space_ = settings.rules.remove_extra_spaces;
  if (rest_.empty()) {
    ended_ = true;
  } else if (settings.rules.add_space && !settings.space_after) {
    add_blank(out);
  }
}

void SentencePieceNormalizer::Run::add_blank(std::string& out) {
  if (owner_.settings_.rules.remove_extra_spaces)
    ++held_;
  else
    out += owner_.settings_.blank;
}

/// Appends a text in which blanks and marks become what the model writes for them.
void SentencePieceNormalizer::Run::take(std::string_view text, std::string& out) {
  const auto& settings = owner_.settings_;
  while (!text.empty()) {
    const bool is_mark = settings.rules.escape_spaces && text.starts_with(kBlankMark);
    if (is_mark || text[0] == ' ') {
      add_blank(out);
      text.remove_prefix(is_mark ? kBlankMark.size() : 1);
      continue;
    }
    for (; held_ > 0; --held_) out += settings.blank;
    size_t n = 1;
    while (n < text.size() && text[n] != ' ' && text[n] != kBlankMark[0]) ++n;
    out += text.substr(0, n);
    text.remove_prefix(n);
  }
}

/// As take(), for a text that is not changed otherwise.
void SentencePieceNormalizer::Run::copy(std::string_view text, std::string& out) const {
  const auto& settings = owner_.settings_;
  const std::string_view from = settings.blank == " " ? kBlankMark : " ";
  if (settings.rules.escape_spaces)
    for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
      out.append(text.substr(0, at)).append(settings.blank);
      text.remove_prefix(at + from.size());
    }
  out += text;
}

/// Takes the next ASCII characters to which no rule applies, up to and including a blank. Returns whether
/// there are any.
bool SentencePieceNormalizer::Run::copy_plain(std::string& out) {
  size_t n = 0;
  const auto is_ascii = [&](size_t i) { return static_cast<uint8_t>(rest_[i]) < owner_.plain_.size(); };
  const auto is_plain = [&](size_t i) {
    return i + 1 < rest_.size() && is_ascii(i) && is_ascii(i + 1) &&
           owner_.plain_[static_cast<uint8_t>(rest_[i])];
  };
  while (is_plain(n) && rest_[n] != ' ') ++n;
  if (n > 0) {
    for (; held_ > 0; --held_) out += owner_.settings_.blank;
    out += rest_.substr(0, n);
    after_space_ = false;
  }
  const bool blank = is_plain(n);
  if (blank) {
    if (!after_space_) add_blank(out);
    after_space_ = owner_.settings_.rules.remove_extra_spaces;
    ++n;
  }
  rest_.remove_prefix(n);
  return n > 0;
}

void SentencePieceNormalizer::Run::finish(std::string& out) {
  const auto& settings = owner_.settings_;
  if (!ended_ && settings.rules.add_space && settings.space_after) out += settings.blank;
  ended_ = true;
}

}  // namespace megalith
