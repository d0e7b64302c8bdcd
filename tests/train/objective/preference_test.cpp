#include "libcore/train/objective/preference.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/train/data/data_set.h"

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

/// Five examples: the length of each is ten times its number.
SampleSource five_examples() {
  SampleSource source([](int64_t, const SampleView&) {});
  source.length = [](int64_t i) { return i * 10; };
  source.example = [](int64_t i) { return i < 5 ? i : -1; };
  return source;
}

TEST(Preference, ComputesTheReferenceOnlyOfWhatIsReached) {
  const SampleSource all = five_examples();
  std::vector<int64_t> lengths;
  const auto losses_of = [&](const SampleSource& source, int64_t first) {  // of steps of two samples
    std::vector<double> losses;
    for (int64_t i = first; i < first + 2; ++i) {
      lengths.push_back(source.length(i));
      losses.push_back(static_cast<double>(source.example(i)));
    }
    return losses;
  };
  const Preference some({.beta = 0.1}, {all, 5, {1, 3, 4}}, losses_of);
  EXPECT_EQ(lengths, (std::vector<int64_t>{10, 30, 40, 50}));  // the last one fills up a step
  // The model's losses are those of the reference, which are the examples' numbers.
  SampleSource pairs = all;
  pairs.example = [](int64_t i) { return i == 0 ? 3 : 1; };
  EXPECT_DOUBLE_EQ(some(pairs, 0, std::vector<double>{3, 1}).loss, std::log(2.0));
  pairs.example = [](int64_t i) { return i == 0 ? 3 : 2; };
  EXPECT_THROW(some(pairs, 0, std::vector<double>{3, 2}), Error);
  lengths.clear();
  const Preference every({.beta = 0.1}, {all, 5}, losses_of);
  EXPECT_EQ(lengths, (std::vector<int64_t>{0, 10, 20, 30, 40, 50}));
}

}  // namespace
}  // namespace megalith::test
