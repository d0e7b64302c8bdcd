#include "libcore/text/formats/sentencepiece/sentencepiece_normalizer.h"

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
std::vector<AddedToken> tokens_of(const std::vector<std::string>& texts) {
  std::vector<AddedToken> tokens;
  for (const std::string& text : texts) tokens.push_back({.text = text});
  return tokens;
}

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(Settings settings, const std::string& where)
    : settings_(std::move(settings)),
      charsmap_(settings_.rules.charsmap, where),
      user_defined_(tokens_of(settings_.user_defined)) {
  changes_nothing_ = charsmap_.empty() && !settings_.rules.remove_extra_spaces;
  for (size_t c = 0; c < plain_.size(); ++c) plain_[c] = is_plain(static_cast<uint8_t>(c));
}

/// Whether the character stays as it is before any other ASCII character: no rule applies, and no
/// user-defined text begins with it.
bool SentencePieceNormalizer::is_plain(uint8_t ascii) const {
  return charsmap_.is_plain(ascii) && !user_defined_.may_begin(static_cast<char>(ascii));
}

SentencePieceNormalizer::Prefix SentencePieceNormalizer::prefix(std::string_view utf8) const {
  if (const size_t bytes = user_defined_.longest_at(utf8); bytes > 0) return {utf8.substr(0, bytes), bytes};
  if (const auto match = charsmap_.longest(utf8)) return {match->text, match->bytes};
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
