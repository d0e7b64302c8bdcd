#include "libcore/finetune/record_files.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith::test {
namespace {

TEST(HeldOut, IsAShareOrANumber) {
  const auto count = [](const std::vector<bool>& held) { return std::count(held.begin(), held.end(), true); };
  EXPECT_EQ(count(held_out(100, 0.05, 1, "x")), 5);
  EXPECT_EQ(count(held_out(100, 0.001, 1, "x")), 1);
  EXPECT_EQ(count(held_out(100, 7, 1, "x")), 7);
  EXPECT_THROW(held_out(3, 3, 1, "x"), Error);
  EXPECT_THROW(held_out(1, 0.1, 1, "x"), Error);
}

// Any record may be held out, and which are depends on the seed alone.
TEST(HeldOut, IsDrawnBySeed) {
  EXPECT_EQ(held_out(100, 0.1, 1, "x"), held_out(100, 0.1, 1, "x"));
  std::vector<int> times(20);
  for (int seed = 0; seed < 400; ++seed) {
    const std::vector<bool> held = held_out(20, 0.25, seed, "x");
    for (size_t i = 0; i < held.size(); ++i) times[i] += held[i] ? 1 : 0;
  }
  for (const int n : times) EXPECT_NEAR(n, 100, 45);  // five standard deviations of a binomial of 400 and 1/4
}

}  // namespace
}  // namespace megalith::test
