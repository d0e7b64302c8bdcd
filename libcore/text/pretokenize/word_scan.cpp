#include "libcore/text/pretokenize/word_scan.h"

namespace megalith {

const BlockClasses& word_classes(WordPattern pattern) {
  constexpr KindSet kWithMarks =
      KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter, CharKind::kMark);
  static const BlockClasses kMarked(kWithMarks), kCased(kWithMarks, BlockExtra::kCases),
      kSegments(kWithMarks, BlockExtra::kSegments);
  switch (pattern) {
    case WordPattern::kQwen35:
      return kMarked;
    case WordPattern::kO200k:
    case WordPattern::kTekken:
      return kCased;
    case WordPattern::kDeepSeek3:
      return kSegments;
    default:
      return plain_classes();
  }
}

FindWords find_words(WordPattern pattern, Isa isa, FindWords generic) {
  using OfPattern = FindWords (*)(WordPattern);
  const OfPattern found = select<OfPattern>(isa, {.generic = nullptr,
                                                  .avx2 = MEGALITH_IF_SIMD(find_words_avx2),
                                                  .avx512vbmi2 = MEGALITH_IF_SIMD(find_words_avx512vbmi2)});
  return found != nullptr ? found(pattern) : generic;
}

}  // namespace megalith
