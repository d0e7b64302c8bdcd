#include "libcore/base/random.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

// The expected values are the known answers in the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, EqualsTheKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The expected order is that of numpy.random.RandomState(1234).shuffle(numpy.arange(10)), numpy 1.24.
TEST(NumpyRandomState, ShufflesAsNumpy) {
  std::vector<int> x(10);
  std::iota(x.begin(), x.end(), 0);
  NumpyRandomState(1234).shuffle(std::span<int>(x));
  EXPECT_EQ(x, (std::vector<int>{7, 2, 9, 1, 0, 8, 4, 5, 6, 3}));
}

}  // namespace
}  // namespace megalith
