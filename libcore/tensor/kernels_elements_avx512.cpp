#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/tensor/kernels_elements_inl.h"

namespace megalith {
namespace {

constexpr __mmask16 kAll = 0xFFFF;  // all lanes: GCC 12 warns about its own intrinsics without a mask

void f32_of_f16_avx512(float* to, const uint16_t* from, int64_t n) {
  constexpr int64_t kLanes = 16;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm512_storeu_ps(
        to + i, _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
  each<f32_of_f16>(to + whole, from + whole, n - whole);
}
void f16_of_f32_avx512(uint16_t* to, const float* from, int64_t n) {
  constexpr int64_t kLanes = 16;
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm512_maskz_cvtps_ph(kAll, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  each<f16_of_f32>(to + whole, from + whole, n - whole);
}
void f32_of_bf16_avx512(float* to, const uint16_t* from, int64_t n) {
  each<f32_of_bf16>(to, from, n);
}
void bf16_of_f32_avx512(uint16_t* to, const float* from, int64_t n) {
  each<bf16_of_f32>(to, from, n);
}

}  // namespace

const ElementKernels kElementKernelsAvx512 = {f32_of_f16_avx512, f32_of_bf16_avx512, f16_of_f32_avx512,
                                              bf16_of_f32_avx512};

}  // namespace megalith
#endif
