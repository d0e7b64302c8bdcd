#define MEGALITH_LANES 4
#define MEGALITH_TABLE kKernelsGeneric
#define MEGALITH_ISA_NAME "generic"
#include "libcore/ops/cpu/kernels/kernels.inc"
