#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "libcore/base/machine/simd.h"

#if defined(MEGALITH_SIMD)
#include <emmintrin.h>
#endif

namespace megalith {

/// Sixteen bytes of a text, which are compared in parallel. Written with the compiler's vector types rather
/// than intrinsics: every processor supports them in some way (SSE2 on x86-64).
struct Bytes16 {
  static constexpr int kBytes = 16;
  typedef uint8_t Vector __attribute__((vector_size(kBytes)));

  static Bytes16 load(const char* at) {
    Bytes16 out;
    std::memcpy(&out.bytes, at, sizeof out.bytes);
    return out;
  }
  void store(char* out) const { std::memcpy(out, &bytes, sizeof bytes); }

  /// Masks, with all bits of a byte set or none. is() sets the bytes that equal `c`, at_most() those that are
  /// at most `max`.
  Bytes16 is(char c) const { return {reinterpret_cast<Vector>(bytes == static_cast<uint8_t>(c))}; }
  Bytes16 at_most(uint8_t max) const { return {reinterpret_cast<Vector>(bytes <= max)}; }
  friend Bytes16 operator|(Bytes16 a, Bytes16 b) { return {a.bytes | b.bytes}; }
  friend Bytes16 operator^(Bytes16 a, Bytes16 b) { return {a.bytes ^ b.bytes}; }

  /// One bit for each byte of a mask, the first byte in the lowest bit.
  unsigned bits() const {
#if defined(MEGALITH_SIMD)
    return static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(bytes)));
#else
    static_assert(std::endian::native == std::endian::little);
    const auto words = reinterpret_cast<Words>(bytes);
    return gather(words[0]) | gather(words[1]) << 8;
#endif
  }

  Vector bytes;

 private:
  typedef uint64_t Words __attribute__((vector_size(kBytes)));
  /// Gathers one bit from each of eight bytes, which are all ones or all zeros; used where no instruction
  /// does this. The `&` keeps bit i of byte i; the product adds up all bytes in its highest byte. That sum
  /// cannot overflow, since no two bytes have the same bit.
  static unsigned gather(uint64_t mask) {
    return static_cast<unsigned>((mask & 0x8040201008040201) * 0x0101010101010101 >> 56);
  }
};

}  // namespace megalith
