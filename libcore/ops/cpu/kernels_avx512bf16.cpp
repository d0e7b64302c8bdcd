#define MEGALITH_LANES 16
#define MEGALITH_BF16_DOT
#define MEGALITH_TABLE kAvx512Bf16Kernels
#define MEGALITH_ISA_NAME "avx512bf16"
#include "libcore/ops/cpu/kernels.inc"
