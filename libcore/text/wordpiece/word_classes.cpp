#include "libcore/text/wordpiece/word_classes.h"

#include <algorithm>

#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/reference_chars.h"

namespace megalith {

void WordCuts::add(const WordCuts& other) {
  at_spaces = at_spaces || other.at_spaces;
  by_letters = by_letters || other.by_letters;
  punctuation = std::max(punctuation, other.punctuation);
  digits = std::max(digits, other.digits);
}

WordClasses::WordClasses(const WordCuts& cuts) : cuts_(cuts) {
  for (uint32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = find(c);
}

WordClasses::Class WordClasses::find(uint32_t code_point) const {
  const CharTraits traits = char_traits(code_point);
  if (cuts_.at_spaces && megalith::is_space(code_point)) return kSpace;
  // Whitespace has the same \w as "single_word" (tools/make_unicode_tables checks it).
  Class found = cuts_.by_letters && traits.is_word() ? kLetter : 0;
  const auto mark = [&](WordCuts::Apart apart, Class kind) {
    if (apart != WordCuts::Apart::kNo) found |= kind;
    if (apart == WordCuts::Apart::kEach) found |= kAlone;
  };
  if (reference_char(code_point).is_punctuation()) mark(cuts_.punctuation, kPunctuation);
  if (traits.is_digit()) mark(cuts_.digits, kDigit);
  return found;
}

}  // namespace megalith
