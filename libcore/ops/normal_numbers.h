#pragma once

#include <cstdint>
#include <span>

namespace megalith {

/// A stream of normal numbers by place: element i is a function of seed, stream and i alone (philox, then
/// Box-Muller, four elements a block), so that any part of it can be made by any rank.
struct NormalNumbers {
  uint64_t seed, stream;
  double std;

  /// Elements [first, first + out.size()), on all threads of the CPU ops.
  void fill(std::span<float> out, int64_t first) const;
};

}  // namespace megalith
