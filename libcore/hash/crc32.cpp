#include "libcore/hash/crc32.h"

#include <array>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/platform/x86.h>

#include "libcore/base/isa.h"
#endif

namespace megalith {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b leaves in the remainder after k more bytes of zeros.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = remainder;
  }
  for (size_t k = 1; k < kSlices; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xFF];
  return tables;
}
constexpr Tables kTables = make_tables();

// On the inverted remainder, eight bytes a step.
uint32_t by_table(uint32_t remainder, const unsigned char* at, size_t bytes) {
  for (; bytes >= kSlices; at += kSlices, bytes -= kSlices) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    word ^= remainder;
    remainder = 0;
    for (size_t k = 0; k < kSlices; ++k) remainder ^= kTables[kSlices - 1 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; bytes > 0; ++at, --bytes) remainder = (remainder >> 8) ^ kTables[0][(remainder ^ *at) & 0xFF];
  return remainder;
}

#if defined(__x86_64__)
constexpr size_t kLane = 16, kFolded = 4 * kLane;

// `lane` moved ahead over the distance that the two constants (powers of x modulo the polynomial) stand for,
// plus what stands there.
__attribute__((target("pclmul,sse4.1"))) __m128i fold(__m128i lane, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) __m128i load(const unsigned char* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Four lanes, each folded over 64 bytes a step, then into one; the last lane and the rest go by table.
__attribute__((target("pclmul,sse4.1"))) uint32_t by_folding(uint32_t remainder, const unsigned char* at,
                                                             size_t bytes) {
  const __m128i over_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i over_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lanes[] = {load(at), load(at + kLane), load(at + 2 * kLane), load(at + 3 * kLane)};
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(remainder)));
  at += kFolded;
  bytes -= kFolded;
  for (; bytes >= kFolded; at += kFolded, bytes -= kFolded)
    for (size_t i = 0; i < std::size(lanes); ++i) lanes[i] = fold(lanes[i], over_64, load(at + i * kLane));
  __m128i one = lanes[0];
  for (size_t i = 1; i < std::size(lanes); ++i) one = fold(one, over_16, lanes[i]);
  std::array<unsigned char, kLane> last{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last.data()), one);
  return by_table(by_table(0, last.data(), last.size()), at, bytes);
}

#define MEGALITH_WIDE __attribute__((target("vpclmulqdq,avx512f,pclmul,sse4.1")))
constexpr size_t kWideLane = 64, kWideFolded = 4 * kWideLane;

MEGALITH_WIDE __m512i fold(__m512i lanes, __m512i constants, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(lanes, constants, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(lanes, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // the sum of three
}

MEGALITH_WIDE __m512i load_wide(const unsigned char* at) {
  return _mm512_loadu_si512(at);
}

// Sixteen lanes, each folded over 256 bytes a step, then into four over 64 bytes; those and the rest as
// above.
MEGALITH_WIDE uint32_t by_wide_folding(uint32_t remainder, const unsigned char* at, size_t bytes) {
  const __m512i over_256 = _mm512_set4_epi64(0x1322d1430, 0x11542778a, 0x1322d1430, 0x11542778a);
  const __m512i over_64 = _mm512_set4_epi64(0x1c6e41596, 0x154442bd4, 0x1c6e41596, 0x154442bd4);
  __m512i lanes[] = {load_wide(at), load_wide(at + kWideLane), load_wide(at + 2 * kWideLane),
                     load_wide(at + 3 * kWideLane)};
  lanes[0] =
      _mm512_xor_si512(lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(remainder))));
  at += kWideFolded;
  bytes -= kWideFolded;
  for (; bytes >= kWideFolded; at += kWideFolded, bytes -= kWideFolded)
    for (size_t i = 0; i < std::size(lanes); ++i)
      lanes[i] = fold(lanes[i], over_256, load_wide(at + i * kWideLane));
  __m512i four = lanes[0];
  for (size_t i = 1; i < std::size(lanes); ++i) four = fold(four, over_64, lanes[i]);
  std::array<unsigned char, kWideLane> last{};
  _mm512_storeu_si512(last.data(), four);
  return by_table(by_table(0, last.data(), last.size()), at, bytes);
}

enum class Folding : uint8_t { kNone, kNarrow, kWide };
Folding folding() {
  static const Folding best = [] {
    if (!CPU_FEATURE_ACTIVE(PCLMULQDQ) || !CPU_FEATURE_ACTIVE(SSE4_1)) return Folding::kNone;
    const bool wide = CPU_FEATURE_ACTIVE(VPCLMULQDQ) && CPU_FEATURE_ACTIVE(AVX512F);
    return wide && chosen_isa() >= Isa::kAvx512 ? Folding::kWide : Folding::kNarrow;
  }();
  return best;
}
#endif

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (bytes >= 2 * kWideFolded && folding() == Folding::kWide) return ~by_wide_folding(~crc, at, bytes);
  if (bytes >= 2 * kFolded && folding() != Folding::kNone) return ~by_folding(~crc, at, bytes);
#endif
  return ~by_table(~crc, at, bytes);
}

}  // namespace megalith
