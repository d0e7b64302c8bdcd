#include "libcore/text/unicode/stream_normalizer.h"

#include <algorithm>

#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/reference_chars.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

bool is_word_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_one_character(std::string_view text) {
  return code_point_at(text).bytes == text.size();
}

/// Whether a text may take part in a change together with a letter before it.
bool may_join_letter(std::string_view text) {
  if (text.empty()) return true;
  const uint32_t c = code_point_at(text).value;
  const ReferenceChar traits = reference_char(c);
  return traits.joins_letter() || traits.decomposes() ||
         char_traits(c).composition() == Composition::kChanges;
}

void push(Normalizer& normalizer, const Normalizer::Step& step) {
  std::vector<Normalizer::Step> steps = normalizer.steps();
  steps.push_back(step);
  normalizer = Normalizer(std::move(steps));
}

}  // namespace

std::optional<StreamNormalizer> StreamNormalizer::of(const Normalizer& whole) {
  StreamNormalizer made;
  made.whole_ = whole;
  for (const Normalizer::Step& step : whole.steps()) {
    if (std::holds_alternative<Normalizer::ReplaceMatches>(step)) return std::nullopt;
    made.add(step);
  }
  if (!made.only_between_words_) return made;
  for (const Normalizer::Step& step : whole.steps())
    if (const auto* const replace = std::get_if<Normalizer::Replace>(&step)) {
      const bool changes_words = std::any_of(replace->from.begin(), replace->from.end(), is_word_character);
      const bool changes_blanks = replace->from.find(' ') != std::string::npos;
      if (changes_words || (changes_blanks && (replace->from != " " || may_join_letter(replace->to))))
        return std::nullopt;
    }
  for (const auto& charsmap : made.charsmaps_)
    if (!charsmap->is_plain(' ')) return std::nullopt;
  return made;
}

/// Adds a step to the normalizers of the parts.
void StreamNormalizer::add(const Normalizer::Step& step) {
  if (const auto* const strip = std::get_if<Normalizer::Strip>(&step)) {
    push(first_, Normalizer::Strip{strip->left, false});
    push(last_, Normalizer::Strip{false, strip->right});
    only_between_words_ = true;
    return;
  }
  push(first_, step);
  if (std::holds_alternative<Normalizer::Prepend>(step)) return;
  push(middle_, step);
  push(last_, step);
  const auto* const replace = std::get_if<Normalizer::Replace>(&step);
  if (!replace || !is_one_character(replace->from) || replace->to.empty()) only_between_words_ = true;
  if (const auto* const precompiled = std::get_if<Normalizer::Precompiled>(&step))
    charsmaps_.push_back(precompiled->charsmap);
}

bool StreamNormalizer::is_plain(char c) const {
  return is_word_character(c) && std::all_of(charsmaps_.begin(), charsmaps_.end(), [&](const auto& charsmap) {
           return charsmap->is_plain(static_cast<uint8_t>(c));
         });
}

std::string_view StreamNormalizer::next(std::string_view utf8, size_t bytes) const {
  if (!only_between_words_) return first_characters(utf8, bytes);
  for (size_t at = utf8.find(' ', bytes); at != std::string_view::npos; at = utf8.find(' ', at + 1))
    if (at > 0 && at + 1 < utf8.size() && is_plain(utf8[at - 1]) && is_plain(utf8[at + 1]))
      return utf8.substr(0, at);
  return utf8;
}

}  // namespace megalith
