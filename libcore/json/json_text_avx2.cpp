#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/json/json_text_inl.h"

namespace megalith {
namespace {

struct Avx2 {
  static constexpr int kBytes = 32;
  static __m256i load(const char* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
  static void store(char* out, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), x); }
  static uint64_t specials(__m256i x) {
    const __m256i text = _mm256_or_si256(_mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')),
                                         _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\')));
    const __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8(0x1F)), x);
    return static_cast<unsigned>(_mm256_movemask_epi8(_mm256_or_si256(text, control)));
  }
};

}  // namespace

const JsonText kJsonTextAvx2 = {find_special<Avx2>, decode<Avx2>};

}  // namespace megalith
#endif
