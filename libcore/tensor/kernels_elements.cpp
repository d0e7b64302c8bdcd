#include "libcore/tensor/kernels_elements.h"

#include <algorithm>
#include <array>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "libcore/base/isa.h"

namespace megalith {
namespace {

// Inlined into functions for one instruction set each, whose vectors the compiler then uses.
#define MEGALITH_INLINE inline __attribute__((always_inline))

constexpr uint32_t kQuiet = 0x400000;  // of a NaN in fp32

MEGALITH_INLINE float f32_of_f16(uint16_t bits) {
  const uint32_t magnitude = uint32_t{bits} << 13 & 0x0FFFE000, sign = uint32_t{bits} << 16 & 0x80000000;
  // The exponent's bias is 112 less; the product is exact, subnormal numbers included.
  const auto scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const uint32_t fraction = magnitude & 0x7FFFFF, special = 0x7F800000 | fraction | (fraction ? kQuiet : 0);
  return std::bit_cast<float>(sign | ((bits & 0x7C00) == 0x7C00 ? special : scaled));
}

MEGALITH_INLINE uint16_t f16_of_f32(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7FFFFFFF;
  const float absolute = std::bit_cast<float>(magnitude);
  const uint32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF);
  const uint32_t normal = ((magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13) - ((127 - 15) << 10);
  // An addend at which the last bit of fp32 is worth 2^-24, a subnormal's step, makes the processor round.
  const uint32_t subnormal = std::bit_cast<uint32_t>(absolute + 0.5F) - std::bit_cast<uint32_t>(0.5F);
  uint32_t out = absolute < 0x1p-14F ? subnormal : normal;
  out = magnitude >= 0x477FF000 ? 0x7C00 : out;  // half way from 65504 to the next power of two
  out = magnitude > 0x7F800000 ? nan : out;
  return static_cast<uint16_t>(sign | out);
}

MEGALITH_INLINE float f32_of_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

MEGALITH_INLINE uint16_t bf16_of_f32(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t nearest_even = word + 0x7FFF + (word >> 16 & 1);
  return static_cast<uint16_t>(((word & 0x7FFFFFFF) > 0x7F800000 ? word | kQuiet : nearest_even) >> 16);
}

template <auto kConvert, class To, class From>
MEGALITH_INLINE void each(To* to, const From* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = kConvert(from[i]);
}

void f32_of_f16_plain(float* to, const uint16_t* from, int64_t n) {
  each<f32_of_f16>(to, from, n);
}
void f32_of_bf16_plain(float* to, const uint16_t* from, int64_t n) {
  each<f32_of_bf16>(to, from, n);
}
void f16_of_f32_plain(uint16_t* to, const float* from, int64_t n) {
  each<f16_of_f32>(to, from, n);
}
void bf16_of_f32_plain(uint16_t* to, const float* from, int64_t n) {
  each<bf16_of_f32>(to, from, n);
}
constexpr ElementKernels kGeneric = {f32_of_f16_plain, f32_of_bf16_plain, f16_of_f32_plain,
                                     bf16_of_f32_plain};

#if defined(__x86_64__)
#define MEGALITH_AVX2 __attribute__((target("avx2,f16c")))
#define MEGALITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

MEGALITH_AVX2 void f32_of_f16_avx2(float* to, const uint16_t* from, int64_t n) {
  constexpr int64_t kLanes = 8;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  each<f32_of_f16>(to + whole, from + whole, n - whole);
}
MEGALITH_AVX2 void f16_of_f32_avx2(uint16_t* to, const float* from, int64_t n) {
  constexpr int64_t kLanes = 8;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  each<f16_of_f32>(to + whole, from + whole, n - whole);
}
MEGALITH_AVX2 void f32_of_bf16_avx2(float* to, const uint16_t* from, int64_t n) {
  each<f32_of_bf16>(to, from, n);
}
MEGALITH_AVX2 void bf16_of_f32_avx2(uint16_t* to, const float* from, int64_t n) {
  each<bf16_of_f32>(to, from, n);
}
constexpr ElementKernels kAvx2 = {f32_of_f16_avx2, f32_of_bf16_avx2, f16_of_f32_avx2, bf16_of_f32_avx2};

constexpr __mmask16 kAll = 0xFFFF;  // without a mask GCC 12 warns of its own header

MEGALITH_AVX512 void f32_of_f16_avx512(float* to, const uint16_t* from, int64_t n) {
  constexpr int64_t kLanes = 16;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm512_storeu_ps(
        to + i, _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
  each<f32_of_f16>(to + whole, from + whole, n - whole);
}
MEGALITH_AVX512 void f16_of_f32_avx512(uint16_t* to, const float* from, int64_t n) {
  constexpr int64_t kLanes = 16;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  each<f16_of_f32>(to + whole, from + whole, n - whole);
}
MEGALITH_AVX512 void f32_of_bf16_avx512(float* to, const uint16_t* from, int64_t n) {
  each<f32_of_bf16>(to, from, n);
}
MEGALITH_AVX512 void bf16_of_f32_avx512(uint16_t* to, const float* from, int64_t n) {
  each<bf16_of_f32>(to, from, n);
}
constexpr ElementKernels kAvx512 = {f32_of_f16_avx512, f32_of_bf16_avx512, f16_of_f32_avx512,
                                    bf16_of_f32_avx512};
#endif

const ElementKernels& choose() {
#if defined(__x86_64__)
  const Isa isa = chosen_isa();
  if (isa >= Isa::kAvx512) return kAvx512;
  if (isa == Isa::kAvx2) return kAvx2;  // every processor with it converts fp16 too
#endif
  return kGeneric;
}

}  // namespace

const ElementKernels& element_kernels() {
  static const ElementKernels& chosen = choose();
  return chosen;
}

}  // namespace megalith
