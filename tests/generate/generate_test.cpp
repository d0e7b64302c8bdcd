#include "libcore/generate/generate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/generate/sample_text.h"
#include "tests/support/log_lines.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::TinyModel;

Generated generate(TinyModel& model, const std::vector<int32_t>& prompt, const SampleOptions& options,
                   std::vector<int32_t> stops = {}) {
  Generator generator(model.stage, model.stream, {});
  const std::vector<std::vector<int32_t>> prompts{prompt};
  return generator
      .run({.prompts = prompts,
            .sampling = options,
            .stop_tokens = std::move(stops),
            .on_token = {},
            .on_end = {}})
      .front();
}

TEST(Generate, StopsAtTheStopToken) {
  TinyModel model(test::tiny_llama());
  const std::vector<int32_t> prompt{3, 1, 4};
  const SampleOptions greedy{.max_new_tokens = 5, .temperature = 0};
  const Generated free = generate(model, prompt, greedy);
  ASSERT_EQ(free.tokens.size(), 5u);
  EXPECT_EQ(free.ending, Ending::kLength);
  const int32_t stop = free.tokens[3];
  const Generated stopped = generate(model, prompt, greedy, {stop});
  const auto first = std::find(free.tokens.begin(), free.tokens.end(), stop);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(free.tokens.begin(), first));
  EXPECT_EQ(stopped.ending, Ending::kStopToken);
}

TEST(Generate, EndsAtTheModelsLastPositionAndSaysSo) {
  TinyModel model(test::tiny_gpt2());  // has 9 positions
  const test::LogLines log;
  const Generated out = generate(model, {1, 2, 3, 4, 5}, {.max_new_tokens = 20, .temperature = 0});
  const std::string said = join(log.lines, "\n");
  EXPECT_EQ(out.tokens.size(), 5u);  // positions 5 to 8 are read; the last token needs no position
  EXPECT_NE(said.find("only 5 of 20 new tokens fit"), std::string::npos) << said;
  EXPECT_THROW(generate(model, std::vector<int32_t>(10, 1), {}), Error);
}

std::vector<Generated> together(TinyModel& model, const std::vector<std::vector<int32_t>>& prompts,
                                const SampleOptions& options, int64_t batch, bool bf16_cache = false) {
  Generator generator(model.stage, model.stream, {.batch = batch, .bf16_cache = bf16_cache});
  return generator.run(
      {.prompts = prompts, .sampling = options, .stop_tokens = {5}, .on_token = {}, .on_end = {}});
}

TEST(Generator, GivesEachSequenceWhatItGetsAlone) {
  for (const ModelConfig& config :
       {test::tiny_gpt2(), test::tiny_llama(), test::tiny_qwen3(), test::tiny_gpt_neox(), test::tiny_falcon(),
        test::tiny_olmo2(), test::tiny_granite()}) {
    TinyModel model(config);
    const std::vector<std::vector<int32_t>> prompts{{1, 2, 3}, {4}, {7, 8}, {1, 2, 3}, {9, 2, 4, 1}, {3, 3}};
    for (const double temperature : {0.0, 1.0}) {
      const SampleOptions options{.max_new_tokens = 4, .temperature = temperature, .seed = 9};
      const auto alone = together(model, prompts, options, 1);
      for (const int64_t batch : {2, 3, 8}) {
        const auto batched = together(model, prompts, options, batch);
        ASSERT_EQ(batched.size(), prompts.size());
        for (size_t i = 0; i < prompts.size(); ++i) {
          EXPECT_EQ(batched[i].tokens, alone[i].tokens) << batch << " " << i;
          EXPECT_EQ(batched[i].ending, alone[i].ending);
        }
      }
    }
  }
}

// Prompts of many lengths: some share a pass, and those of more than 16 tokens have one of their own.
TEST(Generator, ReadsSeveralPromptsInOnePass) {
  for (ModelConfig config : {test::tiny_gpt2(), test::tiny_llama(), test::tiny_qwen3()}) {
    config.max_positions = 80;
    TinyModel model(config);
    std::vector<std::vector<int32_t>> prompts;
    for (const int length : {3, 20, 1, 17, 23, 40, 2, 70, 1, 1, 5, 64, 9}) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (int i = 0; i < length; ++i) prompt.push_back((i * 7 + length) % 10);
    }
    KvPrefix prefix{.tokens = 2, .values = {}};
    for (int64_t i = 0; i < config.layers * 2 * config.kv_heads() * 2 * config.kv_channels; ++i)
      prefix.values.push_back(static_cast<float>(i % 7) / 7);
    const SampleOptions options{.max_new_tokens = 4, .temperature = 1, .seed = 9};
    for (const KvPrefix* const before : {static_cast<const KvPrefix*>(nullptr), &std::as_const(prefix)}) {
      Generator one(model.stage, model.stream, {.batch = 1, .prefix = before});
      const auto alone = one.run({.prompts = prompts, .sampling = options, .stop_tokens = {5}});
      for (const int64_t batch : {2, 5, 16}) {
        Generator many(model.stage, model.stream, {.batch = batch, .prefix = before});
        const auto batched = many.run({.prompts = prompts, .sampling = options, .stop_tokens = {5}});
        for (size_t i = 0; i < prompts.size(); ++i)
          EXPECT_EQ(batched[i].tokens, alone[i].tokens) << batch << " " << i;
        EXPECT_EQ(many.totals().prompt_tokens, 256);
      }
    }
  }
}

// With matrices of bf16 passes are longer, and logits differ by rounding; so the likeliest token may, too,
// but only where another one is about as likely.
TEST(Generator, ReadsPromptsBesideNarrowMatricesInLongerPasses) {
  ModelConfig config = test::tiny_llama();
  config.max_positions = 80;
  TinyModel model(config, {}, DType::kBf16);
  std::vector<std::vector<int32_t>> prompts;
  for (const int length : {3, 70, 1, 64, 23, 40, 2, 70, 1, 75, 5, 64, 79, 30}) {
    std::vector<int32_t>& prompt = prompts.emplace_back();
    for (int i = 0; i < length; ++i) prompt.push_back((i * 7 + length) % 10);
  }
  const SampleOptions options{.max_new_tokens = 1, .temperature = 0};
  const auto alone = together(model, prompts, options, 1), batched = together(model, prompts, options, 14);
  size_t same = 0;
  for (size_t i = 0; i < prompts.size(); ++i) same += batched[i].tokens == alone[i].tokens ? 1 : 0;
  EXPECT_GE(same, prompts.size() - 2);
}

// Several continuations of a prompt equal those of the same prompt given several times, but the prompt is
// read only once.
TEST(Generator, ContinuesAPromptSeveralTimes) {
  for (const ModelConfig& config :
       {test::tiny_gpt2(), test::tiny_llama(), test::tiny_qwen3(), test::tiny_gpt_neox(), test::tiny_falcon(),
        test::tiny_olmo2(), test::tiny_granite()}) {
    TinyModel model(config);
    const std::vector<int32_t> a{1, 2, 3}, b{4}, c{7, 8, 1};
    const std::vector<std::vector<int32_t>> each{a, b, c}, repeated{a, a, a, b, b, b, c, c, c};
    const SampleOptions options{.max_new_tokens = 4, .temperature = 1, .seed = 9};
    KvPrefix prefix{.tokens = 2, .values = {}};
    for (int64_t i = 0; i < config.layers * 2 * config.kv_heads() * 2 * config.kv_channels; ++i)
      prefix.values.push_back(static_cast<float>(i % 7) / 7);
    for (const KvPrefix* const before : {static_cast<const KvPrefix*>(nullptr), &std::as_const(prefix)})
      for (const bool bf16_cache : {false, true})
        for (const int64_t batch : {1, 2, 4, 8}) {
          const Generator::Limits limits{.batch = batch, .bf16_cache = bf16_cache, .prefix = before};
          Generator apart(model.stage, model.stream, limits), shared(model.stage, model.stream, limits);
          const auto want = apart.run({.prompts = repeated, .sampling = options, .stop_tokens = {5}});
          for (int run = 0; run < 2; ++run) {  // the second run reuses the caches of the first
            const auto got =
                shared.run({.prompts = each, .continuations = 3, .sampling = options, .stop_tokens = {5}});
            ASSERT_EQ(got.size(), want.size());
            for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].tokens, want[i].tokens) << batch << i;
          }
          EXPECT_EQ(apart.totals().prompt_tokens, 21);
          EXPECT_EQ(shared.totals().prompt_tokens, 14);
        }
  }
}

TEST(Generator, TellsEachTokenAndEndAsTheyCome) {
  TinyModel model(test::tiny_llama());
  const std::vector<std::vector<int32_t>> prompts{{1, 2}, {3}, {4}};
  std::vector<std::vector<int32_t>> told(3);
  std::vector<size_t> ended;
  Generator generator(model.stage, model.stream, {.batch = 2});
  const auto made =
      generator.run({.prompts = prompts,
                     .sampling = {.max_new_tokens = 4},
                     .stop_tokens = {},
                     .on_token =
                         [&](size_t sequence, int32_t token) {
                           told[sequence].push_back(token);
                           return sequence != 1 || told[1].size() < 2;
                         },
                     .on_end = [&](size_t sequence, const Generated&) { ended.push_back(sequence); }});
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(made[i].tokens, told[i]);
  EXPECT_EQ(made[1].tokens.size(), 2u);
  EXPECT_EQ(made[1].ending, Ending::kCaller);
  EXPECT_EQ(made[0].ending, Ending::kLength);
  std::sort(ended.begin(), ended.end());
  EXPECT_EQ(ended, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(generator.totals().new_tokens, 10);
  EXPECT_EQ(generator.totals().later_tokens, 7);
  EXPECT_EQ(generator.totals().prompt_tokens, 4);
}

// With one layer and relative positions, a token's logits depend only on the tokens within the window. So a
// model without a window must choose the same token after just these tokens.
TEST(Generator, SeesNoFurtherThanAWindow) {
  ModelConfig narrow = test::tiny_llama(), wide = narrow;
  narrow.layers = wide.layers = 1;
  narrow.sliding_window = 3;
  TinyModel model(narrow), whole(wide);
  const std::vector<std::vector<int32_t>> prompts{{1, 2}, {7, 8, 1, 2, 4, 3}};
  const SampleOptions greedy{.max_new_tokens = 3};
  Generator generator(model.stage, model.stream, {.batch = 2});
  const auto made = generator.run({.prompts = prompts, .sampling = greedy});
  bool hidden = false;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int32_t> tokens = prompts[i];
    for (const int32_t token : made[i].tokens) {
      const auto seen = static_cast<std::ptrdiff_t>(std::min<size_t>(tokens.size(), 3));
      const SampleOptions one{.max_new_tokens = 1};
      EXPECT_EQ(generate(whole, {tokens.end() - seen, tokens.end()}, one).tokens[0], token) << tokens.size();
      hidden = hidden || generate(whole, tokens, one).tokens[0] != token;
      tokens.push_back(token);
    }
  }
  EXPECT_TRUE(hidden);  // in at least one step the window changed the token
}

// A device without windows (here the CPU in bf16) must end generation where the window would hide something,
// whether or not the model has a last position.
TEST(Generator, EndsWhereAWindowThatTheDeviceDoesNotSupportWouldHideSomething) {
  for (const PositionEmbedding position : {PositionEmbedding::kNone, PositionEmbedding::kRope}) {
    ModelConfig config = test::tiny_llama();
    config.position = position;
    config.sliding_window = 4;
    TinyModel windowed(config), without(config, {}, DType::kBf16);
    const SampleOptions greedy{.max_new_tokens = 4, .temperature = 0};
    EXPECT_EQ(generate(windowed, {1, 2, 3}, greedy).tokens.size(), 4u);
    const test::LogLines log;
    EXPECT_EQ(generate(without, {1, 2, 3}, greedy).tokens.size(), 2u);
    const std::string said = join(log.lines, "\n");
    EXPECT_NE(said.find("a window of 4 positions"), std::string::npos) << said;
    try {
      generate(without, {1, 2, 3, 4, 5}, greedy);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("a window of 4 positions"), std::string::npos) << error.what();
    }
  }
}

// What a sequence and the next prompt have in common is not read again, whatever the rest of the prompt is
// and whether the cache must grow; the tokens are those of a generator that reads all of it.
TEST(Generator, ContinuesASequenceWithoutReadingItAgain) {
  for (const ModelConfig& config :
       {test::tiny_gpt2(), test::tiny_llama(), test::tiny_qwen3(), test::tiny_gpt_neox(), test::tiny_falcon(),
        test::tiny_olmo2(), test::tiny_granite()}) {
    TinyModel model(config);
    KvPrefix prefix{.tokens = 1, .values = {}};
    for (int64_t i = 0; i < config.layers * 2 * config.kv_heads() * config.kv_channels; ++i)
      prefix.values.push_back(static_cast<float>(i % 7) / 7);
    for (const KvPrefix* const before : {static_cast<const KvPrefix*>(nullptr), &std::as_const(prefix)}) {
      const Generator::Limits limits{.batch = 2, .prefix = before};
      Generator continuing(model.stage, model.stream, limits);
      const auto answer = [&](Generator& generator, const std::vector<int32_t>& prompt, bool continues) {
        const std::vector<std::vector<int32_t>> prompts{prompt};
        return generator.run({.prompts = prompts, .sampling = {.max_new_tokens = 2}, .continues = continues})
            .front()
            .tokens;
      };
      const auto read = [&](const std::vector<int32_t>& prompt) {
        const int64_t so_far = continuing.totals().prompt_tokens;
        Generator fresh(model.stage, model.stream, limits);
        EXPECT_EQ(answer(continuing, prompt, true), answer(fresh, prompt, false));
        return continuing.totals().prompt_tokens - so_far;
      };
      std::vector<int32_t> prompt{3, 1};
      EXPECT_EQ(read(prompt), 2);
      const std::vector<int32_t> made = answer(continuing, prompt, true);
      prompt.insert(prompt.end(), made.begin(), made.end());
      prompt.push_back(4);
      EXPECT_EQ(read(prompt), 2) << "the last token of an answer is not read before, and one is new";
      EXPECT_EQ(read(prompt), 1) << "the last token is read for what comes after it";
      prompt[3] = 9;
      EXPECT_EQ(read(prompt), 2) << "what was changed, and what comes after it";
      EXPECT_EQ(read({3}), 1);
      EXPECT_EQ(read({5, 6}), 2);
    }
  }
}

// A cache in bf16 changes the logits a little, so a token may differ. Here the first two tokens are the same.
TEST(Generator, KeepsKeysAndValuesInBf16) {
  TinyModel model(test::tiny_llama());
  const std::vector<std::vector<int32_t>> prompts{{1, 2, 3}};
  const auto exact = together(model, prompts, {.max_new_tokens = 2}, 1),
             narrow = together(model, prompts, {.max_new_tokens = 2}, 1, true);
  EXPECT_EQ(exact[0].tokens, narrow[0].tokens);
}

/// A tokenizer in which the letters a to w are the ids 0 to 22; the last id ends a text.
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

TEST(SampleText, ContinuesThePrompt) {
  TinyModel model(test::tiny_llama());
  const SampleOptions options{.max_new_tokens = 4, .temperature = 1, .seed = 3};
  const Generated made = generate(model, {0, 1, 2}, options, {22});
  ASSERT_FALSE(made.tokens.empty());
  EXPECT_EQ(sample_text(model.stage, model.stream, Letters(), "abc", options),
            "abc" + Letters().decode(made.tokens));
}

TEST(SampleText, SaysWhyThereIsNone) {
  TinyModel model(test::tiny_gpt2());
  const std::string text = sample_text(model.stage, model.stream, Letters(), "abcdefghijkl", {});
  EXPECT_EQ(text, "(no sample: the prompt has 12 tokens, the model 9 positions; shorten the prompt)");
}

TEST(SampleText, AnEmptyPromptBeginsAText) {
  TinyModel model(test::tiny_llama());
  const SampleOptions options{.max_new_tokens = 4, .temperature = 0};
  const Generated after_eod = generate(model, {22}, options, {22});
  EXPECT_EQ(sample_text(model.stage, model.stream, Letters(), "", options),
            Letters().decode(after_eod.tokens));
}

}  // namespace
}  // namespace megalith
