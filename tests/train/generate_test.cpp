#include "libcore/train/generate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::TinyModel;

/// How often each token is drawn in `draws` steps.
std::map<int32_t, int> histogram(const std::vector<float>& logits, const SampleOptions& options, int draws) {
  std::map<int32_t, int> out;
  for (int step = 0; step < draws; ++step) ++out[choose_token(logits, options, step)];
  return out;
}

// Probabilities 0.5, 0.3, 0.15, 0.05.
const std::vector<float> kLogits{std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};

TEST(ChooseToken, TakesTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(choose_token(kLogits, {.temperature = 0}, 0), 1);
  EXPECT_EQ(choose_token(std::vector<float>{2, 5, 5, 1}, {.temperature = 0}, 0), 1);
}

// 20,000 draws: a share's standard error is at most 0.0036.
TEST(ChooseToken, DrawsByProbability) {
  const auto counts = histogram(kLogits, {.temperature = 1}, 20000);
  const double expected[] = {0.15, 0.5, 0.05, 0.3};
  for (int32_t token = 0; token < 4; ++token)
    EXPECT_NEAR(counts.at(token) / 20000.0, expected[token], 0.015) << token;
}

// At temperature 0.5 probabilities are squared: 0.25, 0.09, 0.0225, 0.0025 of 0.365.
TEST(ChooseToken, TemperatureSharpens) {
  const auto counts = histogram(kLogits, {.temperature = 0.5}, 20000);
  EXPECT_NEAR(counts.at(1) / 20000.0, 0.25 / 0.365, 0.015);
  EXPECT_NEAR(counts.at(3) / 20000.0, 0.09 / 0.365, 0.015);
}

TEST(ChooseToken, TopKKeepsTheLikeliest) {
  const auto counts = histogram(kLogits, {.temperature = 1, .top_k = 2}, 20000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1) / 20000.0, 0.5 / 0.8, 0.015);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_k = 1}, 50).size(), 1u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_k = 100}, 20000).size(), 4u);
}

// The token that crosses the threshold stays, as in transformers' TopPLogitsWarper.
TEST(ChooseToken, TopPKeepsTheFewestThatReachIt) {
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0.45}, 500).size(), 1u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0.6}, 500).size(), 2u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0.9}, 500).size(), 3u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0}, 500).size(), 1u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_k = 2, .top_p = 0.6}, 500).size(), 1u);
}

TEST(ChooseToken, IsAFunctionOfSeedAndStep) {
  std::vector<int32_t> a, b, other;
  for (int step = 0; step < 50; ++step) {
    a.push_back(choose_token(kLogits, {.temperature = 1, .seed = 1}, step));
    b.push_back(choose_token(kLogits, {.temperature = 1, .seed = 1}, step));
    other.push_back(choose_token(kLogits, {.temperature = 1, .seed = 2}, step));
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other);
}

TEST(ChooseToken, RefusesLogitsThatAreNoNumbers) {
  EXPECT_THROW(choose_token(std::vector<float>{1, std::nanf(""), 2}, {}, 0), Error);
}

TEST(Generate, StopsAtTheStopToken) {
  TinyModel model(test::tiny_llama());
  const std::vector<int32_t> prompt{3, 1, 4};
  const SampleOptions greedy{.max_new_tokens = 5, .temperature = 0};
  const Generated free = generate(model.stage, model.stream, prompt, greedy, std::nullopt);
  ASSERT_EQ(free.tokens.size(), 5u);
  EXPECT_FALSE(free.stopped);
  const int32_t stop = free.tokens[3];
  const Generated stopped = generate(model.stage, model.stream, prompt, greedy, stop);
  const auto first = std::find(free.tokens.begin(), free.tokens.end(), stop);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(free.tokens.begin(), first));
  EXPECT_TRUE(stopped.stopped);
}

TEST(Generate, EndsAtTheModelsLastPositionAndSaysSo) {
  TinyModel model(test::tiny_gpt2());  // 9 positions
  std::string said;
  const LogSink before = set_log_sink([&](const std::string& line) { said += line; });
  const Generated out = generate(model.stage, model.stream, std::vector<int32_t>{1, 2, 3, 4, 5},
                                 {.max_new_tokens = 20, .temperature = 0}, std::nullopt);
  set_log_sink(before);
  EXPECT_EQ(out.tokens.size(), 5u);  // positions 5 to 8 are read, the token after the last is not
  EXPECT_NE(said.find("only 5 of 20 new tokens fit"), std::string::npos) << said;
  EXPECT_THROW(generate(model.stage, model.stream, std::vector<int32_t>(10, 1), {}, std::nullopt), Error);
}

/// Letters a to w are the ids 0 to 22; the last one ends a text.
class Letters final : public Tokenizer {
 public:
  int vocab_size() const override { return 23; }
  int eod() const override { return 22; }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (const char c : text) ids.push_back(c - 'a');
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) out += static_cast<char>('a' + id);
    return out;
  }
  std::string name() const override { return "Letters"; }
  std::string hash() const override { return "of a test"; }
};

TEST(GenerateText, ContinuesThePrompt) {
  TinyModel model(test::tiny_llama());
  const SampleOptions options{.max_new_tokens = 4, .temperature = 1, .seed = 3};
  const GeneratedText out = generate_text(model.stage, model.stream, Letters(), "abc", options);
  EXPECT_EQ(out.prompt_tokens, 3);
  EXPECT_EQ(out.text, "abc" + Letters().decode(out.generated.tokens));
  EXPECT_FALSE(out.generated.tokens.empty());
  EXPECT_EQ(sample_text(model.stage, model.stream, Letters(), "abc", options), out.text);
}

TEST(SampleText, SaysWhyThereIsNone) {
  TinyModel model(test::tiny_gpt2());
  const std::string text = sample_text(model.stage, model.stream, Letters(), "abcdefghijkl", {});
  EXPECT_EQ(text, "(no sample: the prompt has 12 tokens, the model 9 positions; shorten the prompt)");
}

TEST(GenerateText, AnEmptyPromptBeginsAText) {
  TinyModel model(test::tiny_llama());
  const SampleOptions options{.max_new_tokens = 4, .temperature = 0};
  const GeneratedText out = generate_text(model.stage, model.stream, Letters(), "", options);
  const Generated after_eod =
      generate(model.stage, model.stream, std::vector<int32_t>{22}, options, int32_t{22});
  EXPECT_EQ(out.generated.tokens, after_eod.tokens);
  EXPECT_EQ(out.text, Letters().decode(after_eod.tokens));
}

}  // namespace
}  // namespace megalith
