#define MEGALITH_LANES 8
#define MEGALITH_TABLE kAvx2Kernels
#define MEGALITH_ISA_NAME "avx2"
#include "libcore/ops/cpu/kernels.inc"
