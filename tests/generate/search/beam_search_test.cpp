// Texts of transformers' beam search (goldens: tools/golden/make_beam_goldens.py), and its rules on made-up
// scores.
#include "libcore/generate/search/beam_search.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/convert/sources/model_source.h"
#include "libcore/generate/generate.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

double number_or(const Json& object, const char* key, double otherwise) {
  const Json* const value = object.find(key);
  return value ? value->as_double() : otherwise;
}

Generator::Job job_of(const Json& golden) {
  const Json* const early = golden.find("early_stopping");
  const int beams = static_cast<int>(golden["num_beams"].as_int());
  return {.prompts = {},
          .continuations = beams,
          .sampling = {.max_new_tokens = 12,
                       .repetition_penalty = number_or(golden, "repetition_penalty", 1),
                       .no_repeat_ngram = static_cast<int>(number_or(golden, "no_repeat_ngram_size", 0))},
          .beams = {.beams = beams,
                    .length_penalty = number_or(golden, "length_penalty", 1),
                    .early_stopping = early && early->as_bool()},
          .stop_tokens = ids_of(golden["ends"])};
}

struct Loaded {
  explicit Loaded(const std::string& path) : source(path), model(source, {}) {}
  ModelSource source;
  LoadedModel model;
};

TEST(BeamSearch, FindsTheTextsOfTransformers) {
  const Json goldens = Json::load(test::test_data("generate/goldens/beams.json"));
  ASSERT_EQ(goldens["max_new_tokens"].as_int(), 12);
  std::map<std::string, Loaded> models;
  size_t ended = 0;
  for (const Json& golden : goldens["cases"].as_array()) {
    const std::string& name = golden["model"].as_string();
    LoadedModel& model =
        models.try_emplace(name, test::test_data("parity/goldens/" + name)).first->second.model;
    Generator generator(model.stage(), model.stream(), {.batch = BeamOptions::kMost});
    const std::vector<std::vector<int32_t>> prompts{ids_of(golden["prompt"])};
    Generator::Job job = job_of(golden);
    job.prompts = prompts;
    const std::vector<Generated> found = generator.run(job);
    const Json::Array& texts = golden["texts"].as_array();
    ASSERT_EQ(found.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(found[i].tokens, ids_of(texts[i])) << golden.dump() << i;
      ended += found[i].ending == Ending::kStopToken ? 1 : 0;
    }
  }
  EXPECT_GT(ended, 50U);
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// Scores of a beam whose tokens 0, 1, 2 have these probabilities.
std::vector<float> row(double first, double second, double third) {
  const auto log_of = [](double p) { return p > 0 ? static_cast<float>(std::log(p)) : kNever; };
  return {log_of(first), log_of(second), log_of(third)};
}

// Token 2 ends a text. Two beams; by hand: 0 (0.5) and 1 (0.3) go on, 2 (0.2) is the third candidate and ends
// no text.
TEST(BeamSearch, EndsTextsAmongTheFirstCandidatesOnly) {
  BeamSearch search({.options = {.beams = 2, .length_penalty = 0}, .prompt = {7}, .max_new = 3, .ends = {2}});
  ASSERT_EQ(search.running().size(), 1U);
  ASSERT_TRUE(search.extend(row(0.5, 0.3, 0.2)));
  ASSERT_EQ(search.running().size(), 2U);
  EXPECT_EQ(search.running()[0].tokens, (std::vector<int32_t>{7, 0}));
  EXPECT_EQ(search.running()[1].tokens, (std::vector<int32_t>{7, 1}));
  EXPECT_TRUE(search.best().empty());
  // 0.5 * 0.9 ends [0]; [1, 0] with 0.3 * 0.6 and [1, 1] with 0.3 * 0.4 go on.
  std::vector<float> scores = row(0.05, 0.05, 0.9);
  for (const float x : row(0.6, 0.4, 0)) scores.push_back(x);
  ASSERT_TRUE(search.extend(scores));
  ASSERT_EQ(search.best().size(), 1U);
  EXPECT_EQ(search.best()[0].tokens, (std::vector<int32_t>{0}));
  EXPECT_TRUE(search.best()[0].ended);
  EXPECT_NEAR(search.best()[0].score, std::log(0.45), 1e-6);
  EXPECT_EQ(search.running()[0].tokens, (std::vector<int32_t>{7, 1, 0}));
  EXPECT_EQ(search.running()[0].parent, 1U);
  // The last step: whatever is chosen ends.
  scores = row(1, 0, 0);
  for (const float x : row(0.5, 0.5, 0)) scores.push_back(x);
  EXPECT_FALSE(search.extend(scores));
  ASSERT_EQ(search.best().size(), 2U);
  EXPECT_EQ(search.best()[1].tokens, (std::vector<int32_t>{1, 0, 0}));
  EXPECT_FALSE(search.best()[1].ended);
}

// The figures are of the texts that are returned: each of at most 12 tokens, of which one is its first.
TEST(BeamSearch, CountsTheTokensOfItsTexts) {
  Loaded loaded(test::test_data("parity/goldens/generate-gpt2"));
  Generator generator(loaded.model.stage(), loaded.model.stream(), {.batch = 4});
  const std::vector<std::vector<int32_t>> prompts{{5, 6}, {7}};
  Generator::Job job{
      .prompts = prompts, .continuations = 2, .sampling = {.max_new_tokens = 12}, .beams = {.beams = 4}};
  int64_t tokens = 0;
  for (const Generated& one : generator.run(job)) {
    EXPECT_EQ(one.tokens.size(), 12U);
    tokens += static_cast<int64_t>(one.tokens.size());
  }
  EXPECT_EQ(generator.totals().new_tokens, tokens);
  EXPECT_EQ(generator.totals().later_tokens, tokens - 4);
}

}  // namespace
}  // namespace megalith
