#include "libcore/base/crc32.h"

#include <array>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <immintrin.h>
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

bool can_fold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}
#endif

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (bytes >= 2 * kFolded && can_fold()) return ~by_folding(~crc, at, bytes);
#endif
  return ~by_table(~crc, at, bytes);
}

}  // namespace megalith
