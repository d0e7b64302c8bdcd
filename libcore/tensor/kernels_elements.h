#pragma once

#include <cstdint>

#include "libcore/base/machine/isa.h"

namespace megalith {

/// Conversions between fp32 and the two types of 16 bits (their bits in uint16_t): to nearest even, too large
/// becomes infinite, NaN stays NaN with the upper bits of its payload. The same bits on every processor.
struct ElementKernels {
  void (*f32_of_f16)(float* to, const uint16_t* from, int64_t n);
  void (*f32_of_bf16)(float* to, const uint16_t* from, int64_t n);
  void (*f16_of_f32)(uint16_t* to, const float* from, int64_t n);
  void (*bf16_of_f32)(uint16_t* to, const float* from, int64_t n);
};
/// Those for `isa`; for what chosen_isa() said when they were first wanted.
const ElementKernels& element_kernels(Isa isa);
const ElementKernels& element_kernels();

extern const ElementKernels kElementKernelsAvx2, kElementKernelsAvx512;

}  // namespace megalith
