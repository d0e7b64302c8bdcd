#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/hash/crc32.h"

namespace megalith {
namespace {

constexpr size_t kLane = 16, kLanes = 4, kFolded = kLanes * kLane;

// `lane` moved ahead over the distance that the two constants (powers of x modulo the polynomial) stand for,
// plus what stands there.
__m128i fold(__m128i lane, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__m128i load(const unsigned char* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

}  // namespace

// Four lanes, each folded over 64 bytes a step, because one lane would wait for the multiplication's latency;
// then into one. The last lane and the rest go by table.
uint32_t crc32_avx2(uint32_t remainder, const unsigned char* at, size_t bytes) {
  if (bytes < 2 * kFolded) return crc32_generic(remainder, at, bytes);
  const __m128i over_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i over_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lanes[kLanes] = {load(at), load(at + kLane), load(at + 2 * kLane), load(at + 3 * kLane)};
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(remainder)));
  at += kFolded;
  bytes -= kFolded;
  for (; bytes >= kFolded; at += kFolded, bytes -= kFolded)
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = fold(lanes[i], over_64, load(at + i * kLane));
  __m128i one = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) one = fold(one, over_16, lanes[i]);
  unsigned char last[kLane];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), one);
  return crc32_generic(crc32_generic(0, last, kLane), at, bytes);
}

}  // namespace megalith
#endif
