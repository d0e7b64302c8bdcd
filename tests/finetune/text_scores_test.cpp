#include "libcore/finetune/text_scores.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/json/json.h"

namespace megalith::test {
namespace {

// The scores of sacrebleu and rouge-score (tools/golden/make_score_goldens.py).
const Json& golden() {
  static const Json kJson = Json::load(MEGALITH_SOURCE_DIR "/tests/finetune/goldens/scores.json");
  return kJson;
}
// Tolerance for the sum of a thousand doubles in another order, and for another library's exp().
constexpr double kRounding = 1e-9;

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> out;
  for (const Json& text : list.as_array()) out.push_back(text.as_string());
  return out;
}

TEST(TextScorer, ScoresAThousandPairsAsSacrebleuAndRougeScore) {
  const auto& pairs = golden()["pairs"].as_array();
  ASSERT_EQ(pairs.size(), 1000U);
  TextScorer all;
  int compared = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string &text = pairs[i].as_array()[0].as_string(),
                      &wanted = pairs[i].as_array()[1].as_string();
    TextScorer one;
    one.add(text, wanted);
    EXPECT_NEAR(one.scores().rouge_l, 100 * golden()["rouge_l"].as_array()[i].as_double(), kRounding)
        << text << "\n"
        << wanted;
    all.add(text, wanted);
    if (const Json* const bleu = golden()["bleu"].find(std::to_string(i + 1))) {
      EXPECT_NEAR(all.scores().bleu, bleu->as_double(), kRounding) << i + 1;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 5);
  EXPECT_NEAR(all.scores().rouge_l, golden()["mean_rouge_l"].as_double(), kRounding);
  EXPECT_NEAR(all.scores().exact_match, golden()["exact_match"].as_double(), kRounding);
}

TEST(TextScorer, SplitsWordsAsSacrebleu) {
  const auto& words = golden()["words"].as_array();
  ASSERT_EQ(words.size(), 200U);
  for (size_t i = 0; i < words.size(); ++i)
    EXPECT_EQ(bleu_words(golden()["pairs"].as_array()[i].as_array()[0].as_string()), strings(words[i]));
}

TEST(TextScorer, TakesTextsThatAreNoUtf8AndNone) {
  TextScorer scorer;
  EXPECT_EQ(scorer.scores().bleu, 0);
  EXPECT_EQ(scorer.scores().exact_match, 0);
  scorer.add("\xff\xfe", "\xff");
  scorer.add("a b c d", "a b c d");
  EXPECT_EQ(scorer.scores().texts, 2);
  EXPECT_EQ(scorer.scores().exact_match, 50);
}

}  // namespace
}  // namespace megalith::test
