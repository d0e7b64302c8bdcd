#define MEGALITH_LANES 16
#define MEGALITH_TABLE kAvx512Kernels
#define MEGALITH_ISA_NAME "avx512"
#include "libcore/ops/cpu/kernels.inc"
