#include "libcore/generate/sampling.h"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

int32_t choose(std::vector<float> logits, const SampleOptions& options, int64_t step) {
  return Sampler(options).choose(logits, {}, {.sequence = 0, .step = step});
}

/// Draws `draws` times. Returns how often each token was drawn.
std::map<int32_t, int> histogram(const std::vector<float>& logits, const SampleOptions& options, int draws) {
  std::map<int32_t, int> out;
  for (int step = 0; step < draws; ++step) ++out[choose(logits, options, step)];
  return out;
}

// Logits of tokens with the probabilities 0.15, 0.5, 0.05 and 0.3.
const std::vector<float> kLogits{std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};

TEST(Sampler, TakesTheLikeliestAtTemperatureZero) {
  EXPECT_EQ(choose(kLogits, {.temperature = 0}, 0), 1);
  EXPECT_EQ(choose(std::vector<float>{2, 5, 5, 1}, {.temperature = 0}, 0), 1);
}

// In 20,000 draws, the standard error of a token's share is at most 0.0036.
TEST(Sampler, DrawsByProbability) {
  const auto counts = histogram(kLogits, {.temperature = 1}, 20000);
  const double expected[] = {0.15, 0.5, 0.05, 0.3};
  for (int32_t token = 0; token < 4; ++token)
    EXPECT_NEAR(counts.at(token) / 20000.0, expected[token], 0.015) << token;
}

// Temperature 0.5 squares the probabilities: 0.25, 0.09, 0.0225 and 0.0025, divided by their sum 0.365.
TEST(Sampler, TemperatureSharpens) {
  const auto counts = histogram(kLogits, {.temperature = 0.5}, 20000);
  EXPECT_NEAR(counts.at(1) / 20000.0, 0.25 / 0.365, 0.015);
  EXPECT_NEAR(counts.at(3) / 20000.0, 0.09 / 0.365, 0.015);
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  const auto counts = histogram(kLogits, {.temperature = 1, .top_k = 2}, 20000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1) / 20000.0, 0.5 / 0.8, 0.015);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_k = 1}, 50).size(), 1u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_k = 100}, 20000).size(), 4u);
}

// The token with which the sum reaches the threshold stays, as in transformers' TopPLogitsWarper.
TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0.45}, 500).size(), 1u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0.6}, 500).size(), 2u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0.9}, 500).size(), 3u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_p = 0}, 500).size(), 1u);
  EXPECT_EQ(histogram(kLogits, {.temperature = 1, .top_k = 2, .top_p = 0.6}, 500).size(), 1u);
}

TEST(Sampler, IsAFunctionOfSeedAndStep) {
  std::vector<int32_t> a, b, other;
  for (int step = 0; step < 50; ++step) {
    a.push_back(choose(kLogits, {.temperature = 1, .seed = 1}, step));
    b.push_back(choose(kLogits, {.temperature = 1, .seed = 1}, step));
    other.push_back(choose(kLogits, {.temperature = 1, .seed = 2}, step));
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other);
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  EXPECT_THROW(choose(std::vector<float>{1, std::nanf(""), 2}, {}, 0), Error);
}

TEST(Sampler, KeepsWhatTransformersKeeps) {
  const Json goldens = Json::load(test::test_data("generate/goldens/sampling.json"));
  const auto ids = [&](const char* name) {
    std::vector<int32_t> out;
    for (const Json& token : goldens[name].as_array()) out.push_back(static_cast<int32_t>(token.as_int()));
    return out;
  };
  for (const Json& one : goldens["cases"].as_array()) {
    SampleOptions options{.temperature = one["temperature"].as_double()};
    if (const Json* k = one.find("top_k")) options.top_k = static_cast<int>(k->as_int());
    if (const Json* p = one.find("top_p")) options.top_p = p->as_double();
    if (const Json* penalty = one.find("repetition_penalty"))
      options.repetition_penalty = penalty->as_double();
    if (const Json* p = one.find("min_p")) options.min_p = p->as_double();
    if (const Json* p = one.find("typical_p")) options.typical_p = p->as_double();
    const Json* const ngram = one.find("no_repeat_ngram_size");
    if (ngram) options.no_repeat_ngram = static_cast<int>(ngram->as_int());
    std::vector<float> logits;
    for (const Json& logit : goldens["logits"].as_array())
      logits.push_back(static_cast<float>(logit.as_double()));
    Sampler sampler(options);
    double total = 0;
    const auto kept = sampler.candidates(logits, ids(ngram ? "repeated" : "before"));
    for (const Sampler::Candidate& candidate : kept) total += candidate.weight;
    EXPECT_EQ(kept.size(), one["kept"].as_object().size()) << one.dump();
    for (const Sampler::Candidate& candidate : kept) {
      const Json* want = one["kept"].find(concat(candidate.token));
      ASSERT_NE(want, nullptr) << candidate.token;
      EXPECT_NEAR(candidate.weight / total, want->as_double(), 1e-5);  // transformers computes in fp32
    }
  }
}

TEST(Sampler, PenalisesRepetitionAlsoWhenGreedy) {
  const std::vector<int32_t> before{1, 1, 2};
  std::vector<float> logits{1, 1.5f, -1};
  EXPECT_EQ(Sampler({.repetition_penalty = 2}).choose(logits, before, {}), 0);
  // Each token is penalised once, however often it occurred.
  EXPECT_EQ(logits, (std::vector<float>{1, 0.75f, -2}));
}

// After "1 2 3 1" the pair "1 2" may not come again, greedily either; a single token may not with size 1.
TEST(Sampler, RepeatsNoSequence) {
  const std::vector<float> logits{0, 1, 5, 2};
  const std::vector<int32_t> before{1, 2, 3, 1};
  const auto chosen = [&](int size) {
    std::vector<float> copy = logits;
    return Sampler({.no_repeat_ngram = size}).choose(copy, before, {});
  };
  EXPECT_EQ(chosen(0), 2);
  EXPECT_EQ(chosen(2), 3);
  EXPECT_EQ(chosen(1), 0);
  EXPECT_EQ(chosen(3), 2);
  EXPECT_EQ(chosen(9), 2);
}

TEST(Sampler, KeepsTiesOfTheKth) {
  std::vector<float> logits{1, 3, 1, 0};
  EXPECT_EQ(Sampler({.temperature = 1, .top_k = 2}).candidates(logits, {}).size(), 3u);
}

TEST(Sampler, DrawsApartForEachSequence) {
  std::vector<int32_t> a, b;
  for (int step = 0; step < 50; ++step) {
    std::vector<float> logits = kLogits;
    a.push_back(Sampler({.temperature = 1}).choose(logits, {}, {.sequence = 0, .step = step}));
    logits = kLogits;
    b.push_back(Sampler({.temperature = 1}).choose(logits, {}, {.sequence = 1, .step = step}));
  }
  EXPECT_NE(a, b);
}

TEST(LogSoftmax, TakesLogitsToProbabilities) {
  std::vector<float> logits{1, 2, 3};
  log_softmax(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_NEAR(logits[2] - logits[0], 2, 1e-6);
  std::vector<float> bad{1, std::nanf("")};
  EXPECT_THROW(log_softmax(bad), Error);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> endless{1, kInfinity};
  EXPECT_THROW(log_softmax(endless), Error);
  std::vector<float> barred{1, -kInfinity};
  log_softmax(barred);
  EXPECT_EQ(barred, (std::vector<float>{0, -kInfinity}));
}

}  // namespace
}  // namespace megalith
