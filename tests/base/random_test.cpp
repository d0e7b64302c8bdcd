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

// Draws are made in blocks, whose ends must not show: sizes around a block and around powers of two, where
// another number of bits is drawn.
TEST(NumpyRandomState, ShufflesAsASwapForEachDraw) {
  for (const size_t n : {1, 2, 3, 63, 64, 65, 66, 128, 129, 1023, 1024, 1025, 70000}) {
    std::vector<uint32_t> x(n), swapped(n);
    std::iota(x.begin(), x.end(), 0u);
    swapped = x;
    NumpyRandomState blocks(7), single(7);
    blocks.shuffle(std::span(x));
    for (size_t i = n; i-- > 1;) std::swap(swapped[i], swapped[static_cast<size_t>(single.interval(i))]);
    EXPECT_EQ(x, swapped) << n;
    EXPECT_EQ(blocks.interval(1000), single.interval(1000)) << "the next draw after " << n;
  }
}

// numpy 2.4.6: x = numpy.arange(100000); numpy.random.RandomState(5).shuffle(x)
TEST(NumpyRandomState, ShufflesManyAsNumpy) {
  std::vector<int64_t> x(100000);
  std::iota(x.begin(), x.end(), int64_t{0});
  NumpyRandomState(5).shuffle(std::span(x));
  const std::vector<int64_t> beginning(x.begin(), x.begin() + 5), end(x.end() - 5, x.end());
  EXPECT_EQ(beginning, (std::vector<int64_t>{60743, 33949, 52805, 11804, 9229}));
  EXPECT_EQ(end, (std::vector<int64_t>{59465, 5520, 20463, 18638, 35683}));
}

}  // namespace
}  // namespace megalith
