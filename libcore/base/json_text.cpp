#include "libcore/base/json_text.h"

#include <emmintrin.h>

#include "libcore/base/isa.h"
#include "libcore/base/json_text_inl.h"

namespace megalith {
namespace {

struct Sse2 {
  static constexpr int kBytes = 16;
  static __m128i load(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
  static void store(char* out, __m128i x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(out), x); }
  static uint64_t specials(__m128i x) {
    const __m128i text =
        _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')), _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(0x1F)), x);
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(text, control)));
  }
};

}  // namespace

const JsonText kJsonTextGeneric = {find_special<Sse2>, decode<Sse2>};

const JsonText& json_text() {
  const Isa isa = chosen_isa();
  if (has_vbmi2(isa)) return kJsonTextAvx512Vbmi2;
  return isa >= Isa::kAvx2 ? kJsonTextAvx2 : kJsonTextGeneric;
}

}  // namespace megalith
