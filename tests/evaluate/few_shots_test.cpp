// make_evaluate_goldens.py has contexts that lm_eval made (tests/apps/eval_test.cpp); here are the cases that
// these do not have.
#include "libcore/evaluate/few_shots.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TaskItems items_of(const std::string& letters, OwnExample own) {
  TaskItems out{.kind = TaskKind::kChoices, .own = own, .items = {}};
  for (const char letter : letters)
    out.items.push_back(
        {.context = {letter}, .continuations = {"yes", "no"}, .answer = 1, .source = {letter}});
  return out;
}

TEST(FewShots, NeverShowAnItemItselfIfItIsLeftOut) {
  const TaskItems items = items_of("abcdaae", OwnExample::kLeftOut);  // equal items are one item
  FewShots shots(items, {items.items, "f", true}, 3, 1);
  for (int round = 0; round < 50; ++round)
    for (const TaskItem& item : items.items) {
      const std::string context = shots.context(item);
      EXPECT_EQ(context.size(), 3 * std::string("a no\n\n").size() + 1) << context;
      EXPECT_EQ(context.find(item.context + " no"), std::string::npos) << context;
    }
}

TEST(FewShots, LeaveAnItemOutOfItsOwnFile) {
  const TaskItems items = items_of("ab", OwnExample::kLeftOutOfOwnFile);
  FewShots own(items, {items.items, "f", true}, 1, 1), other(items, {items.items, "f", false}, 1, 1);
  int same = 0;
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(own.context(items.items[0]), "b no\n\na");
    same += other.context(items.items[0]) == "a no\n\na" ? 1 : 0;
  }
  EXPECT_GT(same, 0);
}

TEST(FewShots, AreDrawnBySeed) {
  const TaskItems items = items_of("abcdefgh", OwnExample::kNotLeftOut);
  const auto contexts = [&](int64_t seed) {
    FewShots shots(items, {items.items, "f", true}, 2, seed);
    std::string out;
    for (const TaskItem& item : items.items) out += shots.context(item);
    return out;
  };
  EXPECT_EQ(contexts(1), contexts(1));
  EXPECT_NE(contexts(1), contexts(2));
}

TEST(FewShots, SayHowManyItemsTheyNeed) {
  const TaskItems items = items_of("aab", OwnExample::kLeftOut);
  const std::string needs =
      " 3 needs 4 items to draw from, train.jsonl has 3; give less, or a larger file in ";
  const TaskOptionNames others{.fewshots = "eval-num-fewshot", .fewshot_data = "eval-fewshot-data"};
  for (const auto& [names, wanted] :
       {std::pair{TaskOptionNames{}, "--num-fewshot" + needs + "--fewshot-data"},
        {others, "--eval-num-fewshot" + needs + "--eval-fewshot-data"}}) {
    try {
      const FewShots shots(items, {items.items, "train.jsonl", false, names}, 3, 1);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_EQ(error.what(), wanted);
    }
  }
  FewShots shots(items, {items.items, "train.jsonl", false}, 2, 1);
  EXPECT_THROW(shots.context(items.items[0]), Error);  // only one item differs from it
}

}  // namespace
}  // namespace megalith
