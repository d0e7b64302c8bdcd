#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace megalith {

/// The counter-based generator Philox4x32-10 (Salmon et al., SC 2011): 128 random bits as a pure function of
/// counter and key. A dropout mask or an initial weight computed with it depends only on its position, not on
/// the order in which values are drawn.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// numpy's legacy RandomState, with which Megatron shuffles samples (docs/formats/indexed.md, "random
/// numbers"). The raw stream equals std::mt19937's; shuffle() and interval() follow numpy's own algorithms.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(uint32_t seed) : engine_(seed) {}

  /// A uniformly distributed integer in [0, max], found by masked rejection. For max = 0, draws no random
  /// number.
  uint64_t interval(uint64_t max);

  /// numpy's shuffle of a 1-D array: for i = n-1 .. 1, swap x[i] with x[interval(i)].
  template <class T>
  void shuffle(std::span<T> x) {
    for (size_t i = x.size(); i-- > 1;) std::swap(x[i], x[static_cast<size_t>(interval(i))]);
  }

 private:
  uint32_t next32() { return static_cast<uint32_t>(engine_()); }
  std::mt19937 engine_;
};

}  // namespace megalith
