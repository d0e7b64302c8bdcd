#include "libcore/base/figures/quantile.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(Quantile, IsTheNearestValue) {
  EXPECT_EQ(quantile({7}, 0.25), 7);
  const std::vector<double> five = {30, 10, 50, 20, 40};
  EXPECT_EQ(quantile(five, 0), 10);
  EXPECT_EQ(quantile(five, 0.25), 20);
  EXPECT_EQ(quantile(five, 0.3), 20);   // at index 1.2, which rounds to 1
  EXPECT_EQ(quantile(five, 0.45), 30);  // at index 1.8, which rounds to 2
  EXPECT_EQ(quantile(five, 0.5), 30);
  EXPECT_EQ(quantile(five, 1), 50);
}

TEST(Quantile, HalfwayIsTheGreater) {
  EXPECT_EQ(quantile({2, 1}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 3);
}

TEST(Quantile, MedianOfFewIsTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median_of_few({7}), 7);
  EXPECT_EQ(median_of_few({30, 10}), 20);
  EXPECT_EQ(median_of_few({5, 1, 3}), 3);
  EXPECT_EQ(median_of_few({4, 1, 30, 2}), 3);
}

}  // namespace
}  // namespace megalith
