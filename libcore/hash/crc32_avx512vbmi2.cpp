#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/hash/crc32.h"

namespace megalith {
namespace {

constexpr size_t kRegister = 64, kRegisters = 4, kFolded = kRegisters * kRegister;

// As in crc32_avx2.cpp, four lanes to a register.
__m512i fold(__m512i lanes, __m512i constants, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(lanes, constants, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(lanes, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // the sum of three
}

__m512i load(const unsigned char* at) {
  return _mm512_loadu_si512(at);
}

}  // namespace

// Sixteen lanes, each folded over 256 bytes a step, then into four over 64 bytes; those go by table, the rest
// by narrower lanes where it is long.
uint32_t crc32_avx512vbmi2(uint32_t remainder, const unsigned char* at, size_t bytes) {
  if (bytes < 2 * kFolded) return crc32_avx2(remainder, at, bytes);
  const __m512i over_256 = _mm512_set4_epi64(0x1322d1430, 0x11542778a, 0x1322d1430, 0x11542778a);
  const __m512i over_64 = _mm512_set4_epi64(0x1c6e41596, 0x154442bd4, 0x1c6e41596, 0x154442bd4);
  __m512i lanes[kRegisters] = {load(at), load(at + kRegister), load(at + 2 * kRegister),
                               load(at + 3 * kRegister)};
  lanes[0] =
      _mm512_xor_si512(lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(remainder))));
  at += kFolded;
  bytes -= kFolded;
  for (; bytes >= kFolded; at += kFolded, bytes -= kFolded)
    for (size_t i = 0; i < kRegisters; ++i) lanes[i] = fold(lanes[i], over_256, load(at + i * kRegister));
  __m512i four = lanes[0];
  for (size_t i = 1; i < kRegisters; ++i) four = fold(four, over_64, lanes[i]);
  unsigned char last[kRegister];
  _mm512_storeu_si512(last, four);
  return crc32_avx2(crc32_generic(0, last, kRegister), at, bytes);
}

}  // namespace megalith
#endif
