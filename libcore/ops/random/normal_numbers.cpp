#include "libcore/ops/random/normal_numbers.h"

#include <algorithm>
#include <cstddef>

#include "libcore/base/machine/isa.h"
#include "libcore/ops/random/normal_numbers_inl.h"

namespace megalith {

void normal_blocks_generic(const NormalNumbers& of, uint64_t first_block, float* out) {
  make_normal_blocks(of, first_block, out);
}

void NormalNumbers::fill(std::span<float> out, int64_t first) const {
  static const auto kMake = select(
      chosen_isa(), Implementations<MakeNormalBlocks>{.generic = normal_blocks_generic,
                                                      .avx2 = MEGALITH_IF_SIMD(normal_blocks_avx2),
                                                      .avx512 = MEGALITH_IF_SIMD(normal_blocks_avx512)});
  constexpr int64_t kRun = int64_t{4} * kNormalLanes;
  const auto end = first + static_cast<int64_t>(out.size());
  const int64_t runs = (end + kRun - 1) / kRun;
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (int64_t run = first / kRun; run < runs; ++run) {
    float numbers[kRun];
    kMake(*this, static_cast<uint64_t>(run * kNormalLanes), numbers);
    const int64_t from = std::max(first, run * kRun), to = std::min(end, (run + 1) * kRun);
    std::copy(numbers + (from - run * kRun), numbers + (to - run * kRun), out.begin() + (from - first));
  }
}

}  // namespace megalith
