#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
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

  /// numpy's shuffle of a 1-D array: for i = n-1 .. 1, swap x[i] with x[interval(i)]. No draw depends on a
  /// swap, so a block of draws is made first and their elements are fetched meanwhile: in a large array each
  /// swap would otherwise wait for memory. Calls pause(done) at the beginning and after every half million
  /// elements, with the number of those done; it may throw.
  template <class T, class Pause>
  void shuffle(std::span<T> x, const Pause& pause) {
    std::array<uint64_t, kDrawsAhead> partners;
    for (size_t i = x.size(), block = 0; i > 1; ++block) {
      if (block % kBlocksWithoutPause == 0) pause(x.size() - i);
      const size_t n = std::min(kDrawsAhead, i - 1);
      intervals(i - 1, std::span(partners).first(n));
      for (size_t k = 0; k < n; ++k) __builtin_prefetch(&x[static_cast<size_t>(partners[k])], 1);
      for (size_t k = 0; k < n; ++k) std::swap(x[--i], x[static_cast<size_t>(partners[k])]);
    }
  }
  template <class T>
  void shuffle(std::span<T> x) {
    shuffle(x, [](size_t) {});
  }

 private:
  static constexpr size_t kDrawsAhead = 64;
  static constexpr size_t kBlocksWithoutPause = size_t{1} << 13;
  /// Writes interval(max), interval(max - 1), … to `out`, which has at most `max` elements.
  void intervals(uint64_t max, std::span<uint64_t> out);
  uint32_t next32() { return static_cast<uint32_t>(engine_()); }
  std::mt19937 engine_;
};

}  // namespace megalith
