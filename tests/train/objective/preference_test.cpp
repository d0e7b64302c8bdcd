#include "libcore/train/objective/preference.h"

#include <cmath>

#include <gtest/gtest.h>

namespace megalith::test {
namespace {

// Checks equation 7 of Rafailov et al. 2023. finetune/parity_test.cpp compares the steps of whole runs with
// torch.
TEST(Preference, CostsLog2WhereTheModelIsItsReference) {
  const PairJudgement judged = judge_pair({.beta = 0.1}, {3, 4, 3, 4});
  EXPECT_DOUBLE_EQ(judged.loss, std::log(2.0));
  EXPECT_DOUBLE_EQ(judged.weight, 0.05);
}

TEST(Preference, IsTheLogisticLossOfTheGain) {
  // The log probability of the chosen answer rose by 2, that of the rejected answer fell by 1.
  const PairJudgement judged = judge_pair({.beta = 0.5}, {1, 5, 3, 4});
  EXPECT_NEAR(judged.loss, -std::log(1 / (1 + std::exp(-1.5))), 1e-12);
  EXPECT_NEAR(judged.weight, 0.5 / (1 + std::exp(1.5)), 1e-12);
}

TEST(Preference, SmoothsAsBothWaysRound) {
  const PairLosses losses{1, 5, 3, 4}, turned{5, 1, 4, 3};
  const PairJudgement way = judge_pair({.beta = 0.5}, losses), other = judge_pair({.beta = 0.5}, turned),
                      both = judge_pair({.beta = 0.5, .smoothing = 0.1}, losses);
  EXPECT_NEAR(both.loss, 0.9 * way.loss + 0.1 * other.loss, 1e-12);
  EXPECT_NEAR(both.weight, 0.9 * way.weight - 0.1 * other.weight, 1e-12);
}

TEST(Preference, StaysFiniteFarFromTheReference) {
  EXPECT_NEAR(judge_pair({.beta = 1}, {5000, 0, 0, 0}).loss, 5000, 1e-9);
  EXPECT_DOUBLE_EQ(judge_pair({.beta = 1}, {5000, 0, 0, 0}).weight, 1);
  EXPECT_EQ(judge_pair({.beta = 1}, {0, 5000, 0, 0}).loss, 0);
}

}  // namespace
}  // namespace megalith::test
