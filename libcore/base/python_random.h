#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace megalith {

/// Python's random.Random(seed), with the methods that draw from a list. The raw stream is that of
/// std::mt19937, which Python seeds with an array of 32-bit words (Matsumoto's init_by_array).
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  /// random(): a multiple of 2^-53 in [0, 1).
  double uniform();
  /// randrange(n), for n in [1, 2^32): draws as many bits as n has until the number is below n.
  size_t below(size_t n);
  /// The places that sample(population, count) takes of a population of n, in its order. count <= n < 2^32.
  std::vector<size_t> sample(size_t n, size_t count);
  /// One place of choices(population): with replacement.
  size_t choice(size_t n) { return static_cast<size_t>(uniform() * static_cast<double>(n)); }

 private:
  uint32_t next32() { return static_cast<uint32_t>(engine_()); }
  std::mt19937 engine_;
};

}  // namespace megalith
