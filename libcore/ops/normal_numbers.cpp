#include "libcore/ops/normal_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "libcore/base/random.h"

namespace megalith {
namespace {

/// Elements 4 * block .. 4 * block + 3 of a stream of standard normal numbers.
std::array<double, 4> normal_block(uint64_t seed, uint64_t stream, uint64_t block) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const std::array<uint32_t, 4> bits =
      philox({low(block), high(block), high(stream), high(seed)}, {low(seed), low(stream)});
  std::array<double, 4> out{};
  for (size_t pair = 0; pair < 4; pair += 2) {
    const double u = (bits[pair] + 1.0) / 0x1p32;  // in (0, 1]
    const double radius = std::sqrt(-2 * std::log(u));
    const double angle = 2 * std::numbers::pi * bits[pair + 1] / 0x1p32;
    out[pair] = radius * std::cos(angle);
    out[pair + 1] = radius * std::sin(angle);
  }
  return out;
}

}  // namespace

void NormalNumbers::fill(std::span<float> out, int64_t first) const {
  const auto count = static_cast<int64_t>(out.size());
  const int64_t begin = first / 4, end = (first + count + 3) / 4;
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (int64_t block = begin; block < end; ++block) {
    const std::array<double, 4> four = normal_block(seed, stream, static_cast<uint64_t>(block));
    for (int64_t i = std::max(first, 4 * block); i < std::min(first + count, 4 * block + 4); ++i)
      out[static_cast<size_t>(i - first)] = static_cast<float>(std * four[static_cast<size_t>(i % 4)]);
  }
}

}  // namespace megalith
