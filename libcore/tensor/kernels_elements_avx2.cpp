#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/tensor/kernels_elements_inl.h"

namespace megalith {
namespace {

void f32_of_f16_avx2(float* to, const uint16_t* from, int64_t n) {
  constexpr int64_t kLanes = 8;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  each<f32_of_f16>(to + whole, from + whole, n - whole);
}
void f16_of_f32_avx2(uint16_t* to, const float* from, int64_t n) {
  constexpr int64_t kLanes = 8;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  each<f16_of_f32>(to + whole, from + whole, n - whole);
}
void f32_of_bf16_avx2(float* to, const uint16_t* from, int64_t n) {
  each<f32_of_bf16>(to, from, n);
}
void bf16_of_f32_avx2(uint16_t* to, const float* from, int64_t n) {
  each<bf16_of_f32>(to, from, n);
}

}  // namespace

const ElementKernels kElementKernelsAvx2 = {f32_of_f16_avx2, f32_of_bf16_avx2, f16_of_f32_avx2,
                                            bf16_of_f32_avx2};

}  // namespace megalith
#endif
