#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include "libcore/text/pretokenize/block_scan_avx512vbmi2_inl.h"
#include "libcore/text/pretokenize/word_scan_inl.h"

namespace megalith {

FindWords find_words_avx512vbmi2(WordPattern pattern) {
  return choose_words<Avx512>(pattern);
}

}  // namespace megalith
#endif
