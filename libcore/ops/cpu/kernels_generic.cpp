#define MEGALITH_LANES 4
#define MEGALITH_TABLE kGenericKernels
#define MEGALITH_ISA_NAME "generic"
#include "libcore/ops/cpu/kernels.inc"
