#include "libcore/ops/cuda/cudnn/close_rows.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace megalith::cuda {
namespace {

/// The first of 1024 rows of 2 has length 5, the others have 5/1000, as after averages of many values: in
/// the mean (5 * 5 + 1023 * 25e-6) / 1024, a length of 0.156.
std::vector<float> rows() {
  std::vector<float> all;
  for (int row = 0; row < 1024; ++row)
    for (const float one : {3.0F, 4.0F}) all.push_back(row == 0 ? one : one / 1000);
  return all;
}
bool close_after(size_t place, float change) {
  std::vector<float> got = rows();
  got[place] += change;
  return rows_are_close(got, rows(), {.columns = 2});
}

TEST(CloseRows, DifferByTheLengthOfALongRow) {
  EXPECT_TRUE(close_after(0, 0));
  EXPECT_TRUE(close_after(0, 0.3F));  // 5/16 is 0.3125
  EXPECT_FALSE(close_after(1, -0.32F));
}

TEST(CloseRows, DifferByTheMeanInAShortRow) {
  EXPECT_TRUE(close_after(2, 0.0097F));  // 0.1563/16 is 0.00977
  EXPECT_FALSE(close_after(2047, 0.0099F));
}

TEST(CloseRows, DifferByALeastWhereAllAreZero) {
  const std::vector<float> zeros(8, 0);
  const auto close_to_zeros = [&](float one) {
    return rows_are_close(std::vector<float>(8, one), zeros, {.columns = 4});
  };
  EXPECT_TRUE(close_to_zeros(0.00024F));  // 1/4096 is 0.000244
  EXPECT_FALSE(close_to_zeros(0.00025F));
}

TEST(CloseRows, AreNoneOfNan) {
  EXPECT_FALSE(close_after(100, NAN));
  EXPECT_FALSE(rows_are_close({1, 2, NAN, NAN}, {1, 2, 3, 4}, {.columns = 2}));
}

TEST(CloseRows, AreOfOneKind) {
  const std::vector<float> wanted{1, 1, 1, 1, 1, 1}, got{9, 1, 1, 9, 1, 1};
  EXPECT_TRUE(rows_are_close(got, wanted, {.columns = 1, .every = 3, .first = 1, .last = 3}));
  EXPECT_FALSE(rows_are_close(got, wanted, {.columns = 1, .every = 3, .first = 0, .last = 2}));
}

}  // namespace
}  // namespace megalith::cuda
