#include "libcore/ops/random/normal_numbers.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/machine/isa.h"
#include "libcore/base/random.h"

namespace megalith {
namespace {

constexpr NormalNumbers kStream{.seed = 0x123456789, .stream = 0xfedcba9876543210, .std = 0.02};

// Box-Muller with the C library's functions on philox's words, for one element.
float by_the_library(int64_t element) {
  const auto block = static_cast<uint64_t>(element / 4);
  const std::array<uint32_t, 4> bits =
      philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0xfedcba98, 0x1},
             {0x23456789, 0x76543210});
  const size_t pair = element % 4 < 2 ? 0 : 2;
  const double radius = std::sqrt(-2 * std::log((bits[pair] + 1.0) / 0x1p32));
  const double angle = 2 * std::numbers::pi * bits[pair + 1] / 0x1p32;
  return static_cast<float>(0.02 * radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

TEST(NormalNumbers, AreBoxMullersOfPhilox) {
  for (const int64_t first : {int64_t{0}, int64_t{3}, int64_t{1021}, (int64_t{1} << 34) + 130}) {
    std::vector<float> numbers(100'003);
    kStream.fill(numbers, first);
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_FLOAT_EQ(numbers[i], by_the_library(first + static_cast<int64_t>(i))) << first + i;
  }
}

TEST(NormalNumbers, AreTheSameBitsUnderEveryInstructionSet) {
  std::vector<float> expected(size_t{4000} * 4 * kNormalLanes);
  kStream.fill(expected, 0);  // with the instruction set of MEGALITH_ISA or, if that is not set, the best one
  const std::array<std::pair<Isa, MakeNormalBlocks>, 3> sets{{
      {Isa::kGeneric, normal_blocks_generic},
      {Isa::kAvx2, MEGALITH_IF_SIMD(normal_blocks_avx2)},
      {Isa::kAvx512, MEGALITH_IF_SIMD(normal_blocks_avx512)},
  }};
  for (const auto& [isa, make] : sets) {
    if (isa > best_isa()) continue;
    std::vector<float> numbers(expected.size());
    for (size_t at = 0; at < numbers.size(); at += 4 * kNormalLanes)
      make(kStream, at / 4, numbers.data() + at);
    EXPECT_EQ(numbers, expected) << name(isa);
  }
}

}  // namespace
}  // namespace megalith
