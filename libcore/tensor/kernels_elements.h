#pragma once

#include <cstdint>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// Conversions between fp32 and the two 16-bit types (their bits in uint16_t): they round to nearest even,
/// turn values that are too large into infinity, and keep NaN with the upper bits of its payload. The same
/// bits on every processor.
struct ElementKernels {
  void (*f32_of_f16)(float* to, const uint16_t* from, int64_t n);
  void (*f32_of_bf16)(float* to, const uint16_t* from, int64_t n);
  void (*f16_of_f32)(uint16_t* to, const float* from, int64_t n);
  void (*bf16_of_f32)(uint16_t* to, const float* from, int64_t n);
};
/// The kernels for `isa`; without an argument, for the instruction set that chosen_isa() returned at the
/// first call.
const ElementKernels& element_kernels(Isa isa);
const ElementKernels& element_kernels();

extern const ElementKernels kElementKernelsAvx2, kElementKernelsAvx512;

}  // namespace megalith
