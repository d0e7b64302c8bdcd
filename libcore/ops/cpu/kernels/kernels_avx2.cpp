#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#define MEGALITH_LANES 8
#define MEGALITH_TABLE kKernelsAvx2
#define MEGALITH_ISA_NAME "avx2"
#include "libcore/ops/cpu/kernels/kernels.inc"
#endif
