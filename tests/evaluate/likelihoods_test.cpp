#include "libcore/evaluate/likelihoods.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <gtest/gtest.h>

#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::TinyModel;

/// The likelihood of a text that is read alone, from the logits that generation uses.
Likelihood alone(TinyModel& model, const ScoredTokens& text, const KvPrefix* prefix = nullptr) {
  const auto rows = static_cast<int64_t>(text.inputs().size());
  KvCache cache(*model.backend, model.stage.config(), model.stage.layers(), {},
                {.capacity = rows + positions_of(prefix), .dtype = model.stage.dtype()});
  if (prefix) cache.put(model.stream, prefix->tokens, prefix->values);
  std::vector<int32_t> ids(text.inputs().begin(), text.inputs().end());
  const std::vector<float> logits =
      model.read(model.stage.logits(model.ctx(false), {ids.data(), DType::kI32, {rows, 1}}, rows, cache));
  model.scratch.rewind(0);
  const auto vocabulary = static_cast<size_t>(model.stage.config().vocab_size);
  Likelihood out;
  for (size_t at = text.tokens.size() - static_cast<size_t>(text.scored); at < text.tokens.size(); ++at) {
    const float* const row = logits.data() + (at - 1) * vocabulary;
    double sum = 0;
    for (size_t i = 0; i < vocabulary; ++i) sum += std::exp(static_cast<double>(row[i]));
    const auto token = static_cast<size_t>(text.tokens[at]);
    out.log += row[token] - std::log(sum);
    out.greedy = out.greedy && *std::max_element(row, row + vocabulary) == row[token];
  }
  return out;
}

std::vector<ScoredTokens> some_texts() {
  return {{{3, 1, 4, 1, 5}, 2}, {{3, 1, 4, 1, 6}, 2},    {{3, 1, 4, 2}, 1},   {{9, 9}, 1},
          {{3, 1, 4, 1, 5}, 4}, {{3, 1, 4, 1, 5, 7}, 1}, {{3, 1, 2, 2, 2}, 3}};
}

TEST(LikelihoodReader, GivesEachTextWhatItGetsAlone) {
  for (const ModelConfig& config : {test::tiny_gpt2(), test::tiny_llama(), test::tiny_qwen3(),
                                    test::tiny_gpt_neox(), test::tiny_olmo2(), test::tiny_granite()})
    for (const int64_t batch : {0, 1, 2, 3}) {
      TinyModel model(config);
      std::vector<ScoredTokens> texts = some_texts();
      // The likeliest token after a text is greedy, and another one is not.
      for (int32_t token = 0; token < config.vocab_size; ++token) texts.push_back({{1, 2, token}, 1});
      LikelihoodReader reader(model.stage, model.stream, {.texts = batch});
      for (int turn = 0; turn < 2; ++turn) {  // the second turn uses the cache of the first
        const std::vector<Likelihood> got = reader.read(texts);
        ASSERT_EQ(got.size(), texts.size());
        int greedy = 0;
        for (size_t i = 0; i < texts.size(); ++i) {
          const Likelihood want = alone(model, texts[i]);
          EXPECT_NEAR(got[i].log, want.log, 1e-5) << i;
          EXPECT_EQ(got[i].greedy, want.greedy) << i;
          greedy += i >= some_texts().size() && got[i].greedy ? 1 : 0;
        }
        EXPECT_EQ(greedy, 1);
      }
      EXPECT_EQ(reader.tokens_read(), 2 * 10);  // 3 1 4 1 5, 2 2 after 3 1, 9, 1 2
    }
}

// More rows than a pass has: pieces are cut, and later passes see the keys of earlier ones.
TEST(LikelihoodReader, CutsLongTextsIntoPasses) {
  ModelConfig config = test::tiny_llama();
  config.max_positions = 3000;
  TinyModel model(config);
  std::vector<ScoredTokens> texts(3);
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t at = 0; at < 1500; ++at)
      texts[i].tokens.push_back(static_cast<int32_t>((at * at + (at < 1200 ? 0 : i)) % 23));
    texts[i].scored = 700;
  }
  LikelihoodReader reader(model.stage, model.stream, {});
  int64_t last = 0, passes = 0;
  const std::vector<Likelihood> got = reader.read(texts, [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    EXPECT_LE(done - last, LikelihoodReader::kPassRows);
    last = done;
    ++passes;
    EXPECT_EQ(all, 1200 + 3 * 299);
  });
  EXPECT_EQ(last, 1200 + 3 * 299);
  EXPECT_EQ(passes, 3);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_NEAR(got[i].log, alone(model, texts[i]).log, 1e-3);
}

TEST(LikelihoodReader, ReadsAPrefixBeforeEachText) {
  const ModelConfig config = test::tiny_llama();
  TinyModel model(config);
  KvPrefix prefix{.tokens = 2, .values = {}};
  for (int64_t i = 0; i < config.layers * 2 * config.kv_heads() * 2 * config.kv_channels; ++i)
    prefix.values.push_back(static_cast<float>(i % 7) / 7);
  const std::vector<ScoredTokens> texts = some_texts();
  LikelihoodReader reader(model.stage, model.stream, {.prefix = &prefix});
  const std::vector<Likelihood> got = reader.read(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_NEAR(got[i].log, alone(model, texts[i], &prefix).log, 1e-5) << i;
}

// The bytes that a run counts before it begins are those that its reader allocates.
TEST(LikelihoodReader, AllocatesWhatWasCounted) {
  for (const ModelConfig& config : {test::tiny_gpt2(), test::tiny_llama()}) {
    TinyModel model(config);
    const std::vector<ScoredTokens> texts = some_texts();
    const ReadingSize size = reading_size(texts, config.vocab_size);
    EXPECT_EQ(size.rows, 8);      // 3 1 4 1 5, 2 2 after 3 1, and 9
    EXPECT_EQ(size.capacity, 5);  // 3 1 4 1 5, which is read before 7
    LikelihoodReader reader(model.stage, model.stream, {.size = size});
    EXPECT_EQ(reader.bytes(), 0U);
    reader.read(std::span(texts).first(2));
    EXPECT_EQ(reader.bytes(), reading_bytes(model.stage, size)) << "of all texts, although two are read";
  }
  TinyModel model(test::tiny_gpt2());
  EXPECT_EQ(reading_bytes(model.stage, reading_size({}, 23)), 0U);
}

TEST(LikelihoodReader, ReadsABf16Model) {
  TinyModel wide(test::tiny_llama()), narrow(test::tiny_llama(), {}, DType::kBf16);
  const std::vector<ScoredTokens> texts = some_texts();
  const std::vector<Likelihood> want = LikelihoodReader(wide.stage, wide.stream, {}).read(texts),
                                got = LikelihoodReader(narrow.stage, narrow.stream, {}).read(texts);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_NEAR(got[i].log, want[i].log, 0.05 * std::abs(want[i].log));
}

}  // namespace
}  // namespace megalith
