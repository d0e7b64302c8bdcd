#pragma once

#include "libcore/tensor/kernels_elements.h"

/// Functions that convert one number, for files that are compiled for one instruction set. They call no
/// inline function from another header: the linker keeps one copy of such a function, which might be one that
/// this processor cannot run.
namespace megalith {
namespace {

// Must be inlined, so that the compiler uses the vectors of the surrounding function's instruction set.
#define MEGALITH_INLINE inline __attribute__((always_inline))

inline constexpr uint32_t kQuiet = 0x400000;  // the bit that makes an fp32 NaN quiet

MEGALITH_INLINE float f32_of_f16(uint16_t bits) {
  const uint32_t magnitude = uint32_t{bits} << 13 & 0x0FFFE000, sign = uint32_t{bits} << 16 & 0x80000000;
  // Multiplies by 2^112, since fp32's exponent bias is 112 larger. The product is exact, even for subnormal
  // numbers.
  const auto scaled = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) * 0x1p112F);
  const uint32_t fraction = magnitude & 0x7FFFFF, special = 0x7F800000 | fraction | (fraction ? kQuiet : 0);
  return __builtin_bit_cast(float, sign | ((bits & 0x7C00) == 0x7C00 ? special : scaled));
}

MEGALITH_INLINE uint16_t f16_of_f32(float value) {
  const auto word = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7FFFFFFF;
  const float absolute = __builtin_bit_cast(float, magnitude);
  const uint32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF);
  const uint32_t normal = ((magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13) - ((127 - 15) << 10);
  // From 0.5 to 1, fp32 numbers are 2^-24 apart, as fp16's subnormal numbers are, so adding 0.5 makes the
  // processor round.
  const uint32_t subnormal =
      __builtin_bit_cast(uint32_t, absolute + 0.5F) - __builtin_bit_cast(uint32_t, 0.5F);
  uint32_t out = absolute < 0x1p-14F ? subnormal : normal;
  // Values from 65520 on, halfway between 65504 and 2^16, round to infinity.
  out = magnitude >= 0x477FF000 ? 0x7C00 : out;
  out = magnitude > 0x7F800000 ? nan : out;
  return static_cast<uint16_t>(sign | out);
}

MEGALITH_INLINE float f32_of_bf16(uint16_t bits) {
  return __builtin_bit_cast(float, uint32_t{bits} << 16);
}

MEGALITH_INLINE uint16_t bf16_of_f32(float value) {
  const auto word = __builtin_bit_cast(uint32_t, value);
  const uint32_t nearest_even = word + 0x7FFF + (word >> 16 & 1);
  return static_cast<uint16_t>(((word & 0x7FFFFFFF) > 0x7F800000 ? word | kQuiet : nearest_even) >> 16);
}

template <auto kConvert, class To, class From>
MEGALITH_INLINE void each(To* to, const From* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = kConvert(from[i]);
}

#undef MEGALITH_INLINE

}  // namespace
}  // namespace megalith
