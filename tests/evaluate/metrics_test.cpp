// make_evaluate_goldens.py has figures that lm_eval made (tests/apps/eval_test.cpp); here are small ones.
#include "libcore/evaluate/metrics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(Metrics, CountTheLikeliestChoiceAndTheLikeliestByCharacter) {
  // By character: -4 / 1, -5 / 2, -6 / 4 (which is the right one, although it has more bytes).
  const TaskItem item{
      .context = "c", .continuations = {"a", "bc", "\u65e5\u672c\u8a9eX"}, .answer = 2, .source = {}};
  const std::vector<Likelihood> likelihoods{{-4, false}, {-5, false}, {-6, false}};
  EXPECT_EQ(likeliest_choice(likelihoods), 0U);
  EXPECT_EQ(likeliest_by_length(item, likelihoods), 2U);
  EXPECT_EQ(likeliest_choice(std::vector<Likelihood>{{-4, false}, {-4, false}}), 0U);
  const std::vector<TaskItem> items{item, item};
  const std::vector<std::vector<Likelihood>> all{likelihoods, {{-4, false}, {-5, false}, {-1, false}}};
  const std::vector<Metric> metrics = task_metrics(TaskKind::kChoices, items, all);
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].name, "acc");
  EXPECT_EQ(metrics[0].value, 0.5);
  EXPECT_EQ(metrics[0].error, 0.5);  // sqrt(0.5 / 1) / sqrt(2)
  EXPECT_EQ(metrics[1].name, "acc_norm");
  EXPECT_EQ(metrics[1].value, 1);
  EXPECT_EQ(metrics[1].error, 0);
}

TEST(Metrics, OfTextsWeighWordsAndBytes) {
  const auto text = [](const char* words) {
    return TaskItem{.context = {}, .continuations = {words}, .answer = 0, .source = {}};
  };
  const std::vector<TaskItem> items{text("a b"), text("\u00fc c d e")};  // 2 and 4 words, 3 and 8 bytes
  const std::vector<Metric> metrics = task_metrics(
      TaskKind::kText, items, std::vector<std::vector<Likelihood>>{{{-5, false}}, {{-7, false}}});
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_NEAR(metrics[0].value, 12.0 / 11 / std::log(2), 1e-12);
  EXPECT_NEAR(metrics[1].value, std::exp(12.0 / 11), 1e-12);
  EXPECT_NEAR(metrics[2].value, std::exp(2.0), 1e-12);
  for (const Metric& metric : metrics) EXPECT_FALSE(metric.error || metric.higher_is_better) << metric.name;
}

// The expected error is that of Python 3.11: random.Random(seed).choices() for each seed, statistics.stdev().
TEST(Metrics, OfPerplexitiesHaveAnErrorByTheBootstrap) {
  const std::vector<double> logs{-1, -2.5, -0.25, -4};
  EXPECT_NEAR(*error_of_perplexity(logs), 7.4182219170485535, 1e-9);
}

TEST(Metrics, OfASingleItemHaveNoStandardError) {
  const std::vector<double> one{-3};
  EXPECT_FALSE(error_of_mean(one));
  EXPECT_FALSE(error_of_perplexity(one));
}

}  // namespace
}  // namespace megalith
