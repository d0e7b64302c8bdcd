#include "libcore/hash/crc32.h"

#include <array>
#include <cstring>

namespace megalith {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b leaves in the remainder after k more bytes of zeros, so that eight bytes are
// looked up side by side.
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

}  // namespace

// Eight bytes a step.
uint32_t crc32_generic(uint32_t remainder, const unsigned char* at, size_t bytes) {
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

Crc32 crc32_kernel(Isa isa) {
  return select<Crc32>(isa, {.generic = crc32_generic,
                             .avx2 = MEGALITH_IF_SIMD(crc32_avx2),
                             .avx512vbmi2 = MEGALITH_IF_SIMD(crc32_avx512vbmi2)});
}

uint32_t crc32(uint32_t crc, const void* data, size_t bytes) {
  static const Crc32 kernel = crc32_kernel(chosen_isa());
  return ~kernel(~crc, static_cast<const unsigned char*>(data), bytes);
}

}  // namespace megalith
