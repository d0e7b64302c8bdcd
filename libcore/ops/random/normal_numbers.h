#pragma once

#include <cstdint>
#include <span>

namespace megalith {

/// A stream of normal numbers by place: element i is a function of seed, stream and i only (Philox, then
/// Box-Muller, four elements a block), so that any rank can make any part of it. The same bits on every
/// processor.
struct NormalNumbers {
  uint64_t seed, stream;
  double std;

  /// Writes elements [first, first + out.size()), on all threads of the CPU ops.
  void fill(std::span<float> out, int64_t first) const;
};

/// Blocks that are made at once: enough for the widest vectors, few enough for the first-level cache.
inline constexpr int kNormalLanes = 64;
/// Writes blocks [first_block, first_block + kNormalLanes) of a stream, 4 * kNormalLanes elements, to `out`.
using MakeNormalBlocks = void (*)(const NormalNumbers& of, uint64_t first_block, float* out);
void normal_blocks_generic(const NormalNumbers& of, uint64_t first_block, float* out);
void normal_blocks_avx2(const NormalNumbers& of, uint64_t first_block, float* out);
void normal_blocks_avx512(const NormalNumbers& of, uint64_t first_block, float* out);

}  // namespace megalith
