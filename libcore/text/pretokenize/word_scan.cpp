#include "libcore/text/pretokenize/word_scan.h"

#include "libcore/base/isa.h"

namespace megalith {

const BlockClasses& word_classes(WordPattern pattern) {
  constexpr KindSet kWithMarks =
      KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter, CharKind::kMark);
  static const BlockClasses with_marks(kWithMarks), cased(kWithMarks, true);
  switch (pattern) {
    case WordPattern::kQwen35:
      return with_marks;
    case WordPattern::kO200k:
    case WordPattern::kTekken:
      return cased;
    default:
      return plain_classes();
  }
}

FindWords find_words(WordPattern pattern, FindWords generic) {
  const Isa isa = chosen_isa();
  if (has_vbmi2(isa)) return find_words_avx512vbmi2(pattern);
  return isa >= Isa::kAvx2 ? find_words_avx2(pattern) : generic;
}

}  // namespace megalith
