#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#define MEGALITH_LANES 16
#define MEGALITH_BF16_DOT
#define MEGALITH_TABLE kKernelsAvx512Bf16
#define MEGALITH_ISA_NAME "avx512bf16"
#include "libcore/ops/cpu/kernels/kernels.inc"
#endif
