#include "libcore/plan/search/split.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace megalith {
namespace {

double slowest(const std::vector<int>& cut, const std::vector<StageLimit>& stages) {
  double out = 0;
  for (size_t i = 0; i < cut.size(); ++i) out = std::max(out, cut[i] + stages[i].extra);
  return out;
}

/// The time of the slowest stage in the best split, found by trying every split.
double brute(int layers, const std::vector<StageLimit>& stages, std::vector<int>& cut) {
  if (cut.size() + 1 == stages.size()) {
    if (layers < 1 || layers > stages.back().most) return std::numeric_limits<double>::infinity();
    cut.push_back(layers);
    const double cost = slowest(cut, stages);
    cut.pop_back();
    return cost;
  }
  double best = std::numeric_limits<double>::infinity();
  for (int here = 1; here <= std::min(layers, stages[cut.size()].most); ++here) {
    cut.push_back(here);
    best = std::min(best, brute(layers - here, stages, cut));
    cut.pop_back();
  }
  return best;
}

TEST(Split, IsAsFastAsTheBestOfAllSplits) {
  uint32_t state = 12345;
  const auto random = [&](uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<StageLimit> stages(2 + random(4));
    for (StageLimit& stage : stages) stage = {random(30) / 10.0, static_cast<int>(3 + random(8))};
    const int layers = static_cast<int>(stages.size() + random(12));
    std::vector<int> scratch;
    const double best = brute(layers, stages, scratch);
    const std::vector<int> cut = split_layers(layers, stages);
    if (cut.empty()) {
      EXPECT_EQ(best, std::numeric_limits<double>::infinity());
      continue;
    }
    EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), 0), layers);
    EXPECT_EQ(slowest(cut, stages), best);
  }
}

// Llama 3 405B (arXiv 2407.21783, section 3.3.2): one layer fewer on the first and the last of 16 stages.
TEST(Split, TakesALayerFromTheEndsOfLlama405B) {
  std::vector<StageLimit> stages(16);
  stages.back().extra = 0.7;  // time of the head, in layers
  const std::vector<int> cut = split_layers(126, stages);
  EXPECT_EQ(cut.front(), 7);
  EXPECT_EQ(cut.back(), 7);
  EXPECT_EQ(*std::max_element(cut.begin(), cut.end()), 8);
}

TEST(Split, TakesNoLongerForVeryDeepModels) {
  std::vector<StageLimit> stages(4096);
  stages.front().extra = 0.4;
  stages.back().extra = 2.3;
  const std::vector<int> cut = split_layers(16384, stages);
  EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), 0), 16384);
  EXPECT_LE(slowest(cut, stages), 5);  // 4 layers on most stages; the head's 2.3 are worth two of them
  EXPECT_EQ(cut.back(), 2);
}

}  // namespace
}  // namespace megalith
