#include "libcore/evaluate/reading_plan.h"

#include <random>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

// Three choices after one context, one of them the beginning of another, and another text.
TEST(ReadingPlan, ReadsASharedBeginningOnce) {
  const std::vector<ScoredTokens> texts{
      {{1, 2, 3, 7, 8}, 2}, {{1, 2, 3, 7, 9}, 2}, {{1, 2, 3, 4}, 1}, {{5, 6}, 1}, {{1, 2, 3, 7, 8, 1}, 3}};
  const ReadingPlan plan = plan_reading(texts);
  EXPECT_EQ(plan.rows, 3 + 1 + 1 + 1);  // 1 2 3, 7, 8, 5
  EXPECT_EQ(plan.longest, 5);
  ASSERT_EQ(plan.targets.size(), 9U);
  for (size_t i = 1; i < plan.targets.size(); ++i) EXPECT_LE(plan.targets[i - 1].row, plan.targets[i].row);
}

// Replays the plan with one cache and compares what each target follows with its text.
TEST(ReadingPlan, EachTargetFollowsItsOwnText) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScoredTokens> texts(1 + random() % 12);
    int64_t scored = 0;
    for (ScoredTokens& text : texts) {
      text.tokens.resize(2 + random() % 6);
      for (int32_t& token : text.tokens) token = static_cast<int32_t>(random() % 2);
      text.scored = 1 + static_cast<int64_t>(random() % (text.tokens.size() - 1));
      scored += text.scored;
    }
    const ReadingPlan plan = plan_reading(texts);
    std::vector<int32_t> cache;
    std::vector<std::vector<int32_t>> before;  // for each row, the tokens up to it
    for (const ReadingPlan::Piece& piece : plan.pieces) {
      ASSERT_LE(piece.past, static_cast<int64_t>(cache.size()));
      cache.resize(static_cast<size_t>(piece.past));
      for (int64_t row = 0; row < piece.rows; ++row) {
        cache.push_back(texts[piece.text].tokens[static_cast<size_t>(piece.past + row)]);
        before.push_back(cache);
      }
    }
    ASSERT_EQ(static_cast<int64_t>(before.size()), plan.rows);
    ASSERT_EQ(static_cast<int64_t>(plan.targets.size()), scored);
    std::vector<size_t> seen(texts.size(), 0);
    for (const ReadingPlan::Target& target : plan.targets) {
      const ScoredTokens& text = texts[target.text];
      std::vector<int32_t> whole = before[static_cast<size_t>(target.row)];
      whole.push_back(target.token);
      ASSERT_LE(whole.size(), text.tokens.size());
      EXPECT_TRUE(std::equal(whole.begin(), whole.end(), text.tokens.begin()));
      EXPECT_GT(whole.size(), text.tokens.size() - static_cast<size_t>(text.scored));
      ++seen[target.text];
    }
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(static_cast<int64_t>(seen[i]), texts[i].scored);
  }
}

TEST(ReadingPlan, RefusesATextWithoutContextOrTarget) {
  for (const ScoredTokens& text : {ScoredTokens{{1, 2}, 0}, {{1, 2}, 2}, {{1}, 1}, {{}, 0}})
    EXPECT_THROW(plan_reading(std::span(&text, 1)), Error);
}

}  // namespace
}  // namespace megalith
