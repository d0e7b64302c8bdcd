#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include "libcore/ops/random/normal_numbers_inl.h"

namespace megalith {

void normal_blocks_avx512(const NormalNumbers& of, uint64_t first_block, float* out) {
  make_normal_blocks(of, first_block, out);
}

}  // namespace megalith
#endif
