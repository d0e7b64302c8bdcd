#pragma once

#include <cstdint>
#include <span>

namespace megalith {

/// A sequence of normal numbers with random access: element i depends only on seed, stream and i (Philox,
/// then Box-Muller, four elements per block), so that any rank can compute any part. The bits are the same on
/// every processor.
struct NormalNumbers {
  uint64_t seed, stream;
  double std;

  /// Writes elements [first, first + out.size()), on all threads of the CPU ops.
  void fill(std::span<float> out, int64_t first) const;
};

/// Number of blocks computed at once: enough for the widest vectors, few enough for the first-level cache.
inline constexpr int kNormalLanes = 64;
/// Writes blocks [first_block, first_block + kNormalLanes) of a stream, 4 * kNormalLanes elements, to `out`.
using MakeNormalBlocks = void (*)(const NormalNumbers& of, uint64_t first_block, float* out);
void normal_blocks_generic(const NormalNumbers& of, uint64_t first_block, float* out);
void normal_blocks_avx2(const NormalNumbers& of, uint64_t first_block, float* out);
void normal_blocks_avx512(const NormalNumbers& of, uint64_t first_block, float* out);

}  // namespace megalith
