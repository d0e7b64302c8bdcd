#include "libcore/tensor/kernels_elements.h"

#include "libcore/tensor/kernels_elements_inl.h"

namespace megalith {
namespace {

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

}  // namespace

const ElementKernels& element_kernels(Isa isa) {
  return *select<const ElementKernels*>(isa, {.generic = &kGeneric,
                                              .avx2 = MEGALITH_IF_SIMD(&kElementKernelsAvx2),
                                              .avx512 = MEGALITH_IF_SIMD(&kElementKernelsAvx512)});
}

const ElementKernels& element_kernels() {
  static const ElementKernels& chosen = element_kernels(chosen_isa());
  return chosen;
}

}  // namespace megalith
