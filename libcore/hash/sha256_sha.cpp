#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/hash/sha256_rounds.h"

namespace megalith {
namespace {

/// The next four words of the message schedule from the sixteen before them: `w` at their beginning.
__m128i next_words(const __m128i* w) {
  const __m128i seven_before = _mm_alignr_epi8(w[3], w[2], 4);
  return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), seven_before), w[3]);
}

/// The state as the instructions want it: a, b, e, f and c, d, g, h, the first on top.
struct Halves {
  __m128i abef, cdgh;

  /// Four rounds. After two the old a, b, e, f are the new c, d, g, h, so only the other half is computed.
  void rounds(__m128i words, const uint32_t* constants) {
    const __m128i sum = _mm_add_epi32(words, _mm_load_si128(reinterpret_cast<const __m128i*>(constants)));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
  }
};

}  // namespace

void sha256_blocks_sha(std::array<uint32_t, 8>& state, const uint8_t* blocks, size_t count) {
  const auto word = [&](size_t i) { return static_cast<int>(state[i]); };
  Halves now{_mm_set_epi32(word(0), word(1), word(4), word(5)),
             _mm_set_epi32(word(2), word(3), word(6), word(7))};
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (; count > 0; --count, blocks += 64) {
    const Halves before = now;
    __m128i schedule[16];
    for (size_t i = 0; i < 16; ++i) {
      schedule[i] = i < 4
                        ? _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks + 16 * i)),
                                           big_endian)
                        : next_words(schedule + i - 4);
      now.rounds(schedule[i], kSha256Rounds.data() + 4 * i);
    }
    now = {_mm_add_epi32(now.abef, before.abef), _mm_add_epi32(now.cdgh, before.cdgh)};
  }
  alignas(16) std::array<uint32_t, 4> abef, cdgh;
  _mm_store_si128(reinterpret_cast<__m128i*>(abef.data()), now.abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(cdgh.data()), now.cdgh);
  state = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
}

}  // namespace megalith
#endif
