#include "libcore/text/word_scan.h"

#include "libcore/base/isa.h"

namespace megalith {

const BlockClasses& word_classes(WordPattern pattern) {
  static const BlockClasses with_marks(
      KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter, CharKind::kMark));
  return pattern == WordPattern::kQwen35 ? with_marks : plain_classes();
}

FindWords find_words(WordPattern pattern, FindWords generic) {
  const Isa isa = chosen_isa();
  if (has_vbmi2(isa)) return find_words_avx512vbmi2(pattern);
  return isa >= Isa::kAvx2 ? find_words_avx2(pattern) : generic;
}

}  // namespace megalith
