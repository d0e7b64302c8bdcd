// The generator over ranks that share a model's matrices, compared with one rank; and what several ranks do
// not do.
#include "libcore/generate/ranks/ranked_run.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/convert/sources/model_source.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

/// Two ranks or one with a model whose texts are those of transformers (tests/parity/goldens). Its vocabulary
/// of 700 ids is padded, so that the second rank has 316 of 384 rows.
class TensorRanks : public testing::TestWithParam<const char*> {
 protected:
  static Texts texts_of(const std::vector<Generated>& made) {
    Texts out;
    for (const Generated& one : made) out.push_back(one.tokens);
    return out;
  }
  Texts of_one(const Generator::Limits& limits, const Generator::Job& job) const {
    LoadedModel model(source_, {});
    return texts_of(Generator(model.stage(), model.stream(), limits).run(job));
  }
  /// The texts of the first of two ranks; the second returns none.
  Texts of_two(const Generator::Limits& limits, const Generator::Job& job) const {
    Texts first;
    run_thread_ranks(2, {}, [&](Communicator& ranks) {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      LoadedModel model(source_, {.backend = backend.get(), .split = {.rank = ranks.rank(), .size = 2}});
      Generator::Limits own = limits;
      own.ranks = &ranks;
      const Texts made = texts_of(Generator(model.stage(), model.stream(), own).run(job));
      if (ranks.rank() == 0)
        first = made;
      else
        EXPECT_TRUE(made.empty());
    });
    return first;
  }
  const ModelSource source_{test::test_data(std::string("parity/goldens/") + GetParam())};
  const Texts prompts_{{1, 2, 3}, {44}, {7, 8, 9, 10, 11}, {600, 1}};
};
INSTANTIATE_TEST_SUITE_P(Families, TensorRanks, testing::Values("generate-gpt2", "generate-llama"),
                         [](const auto& instance) { return std::string(instance.param).substr(9); });

TEST_P(TensorRanks, WriteTheTextsOfOne) {
  for (const double temperature : {0.0, 1.0}) {
    const Generator::Job job{.prompts = prompts_,
                             .continuations = temperature > 0 ? 2 : 1,
                             .sampling = {.max_new_tokens = 12, .temperature = temperature, .seed = 7},
                             .stop_tokens = {0}};
    const Texts one = of_one({.batch = 1}, job);
    for (const int64_t batch : {1, 3}) EXPECT_EQ(of_two({.batch = batch}, job), one) << temperature;
  }
}

TEST_P(TensorRanks, FindTheBeamsOfOne) {
  const Generator::Job job{.prompts = prompts_,
                           .continuations = 3,
                           .sampling = {.max_new_tokens = 8, .no_repeat_ngram = 2},
                           .beams = {.beams = 4},
                           .stop_tokens = {0, 5}};
  EXPECT_EQ(of_two({.batch = 4}, job), of_one({.batch = 4}, job));
}

// The calls back are those of the first rank, in its own thread, and end texts on both.
TEST_P(TensorRanks, CallBackOnTheFirstAlone) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  size_t tokens = 0, ends = 0;
  const Generator::Job job{.prompts = prompts_,
                           .sampling = {.max_new_tokens = 12},
                           .on_token =
                               [&](size_t sequence, int32_t) {
                                 const std::scoped_lock lock(mutex);
                                 threads.insert(std::this_thread::get_id());
                                 ++tokens;
                                 return sequence != 2;
                               },
                           .on_end =
                               [&](size_t, const Generated&) {
                                 const std::scoped_lock lock(mutex);
                                 ++ends;
                               }};
  const Texts texts = of_two({.batch = 2}, job);
  EXPECT_EQ(texts[2].size(), 1U);
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_EQ(ends, 4U);
  EXPECT_EQ(tokens, texts[0].size() + texts[1].size() + texts[2].size() + texts[3].size());
}

TEST_P(TensorRanks, ShareAPrefix) {
  const ModelConfig& config = source_.config();
  const int64_t each = 3 * config.kv_channels, groups = config.kv_heads();
  KvPrefix whole{.tokens = 3, .values = {}};
  for (int64_t i = 0; i < config.layers * 2 * groups * each; ++i)
    whole.values.push_back(static_cast<float>(i % 13) / 13);
  const Generator::Job job{.prompts = prompts_, .sampling = {.max_new_tokens = 12}};
  const Texts one = of_one({.prefix = &whole}, job), without = of_one({}, job);
  EXPECT_NE(one, without);
  Texts first;
  run_thread_ranks(2, {}, [&](Communicator& ranks) {
    // By hand: half of the groups of each layer's keys and values.
    KvPrefix part{.tokens = 3, .values = {}};
    for (int64_t i = 0; i < config.layers * 2; ++i) {
      const auto begin = whole.values.begin() + (i * groups + ranks.rank() * groups / 2) * each;
      part.values.insert(part.values.end(), begin, begin + groups / 2 * each);
    }
    const std::unique_ptr<Backend> backend = make_cpu_backend();
    LoadedModel model(source_, {.backend = backend.get(), .split = {.rank = ranks.rank(), .size = 2}});
    const Texts made =
        texts_of(Generator(model.stage(), model.stream(), {.prefix = &part, .ranks = &ranks}).run(job));
    if (ranks.rank() == 0) first = made;
  });
  EXPECT_EQ(first, one);
}

std::string complaints(const GenerateConfig& config, ParallelConfig parallel) {
  parallel.finish();
  Problems problems;
  check_ranked(config, parallel, problems);
  return problems.text();
}

TEST(RankedRun, RefusesWhatSeveralRanksDoNotDo) {
  GenerateConfig config;
  EXPECT_EQ(complaints(config, {.nproc = 1}), "");
  EXPECT_EQ(complaints(config, {.tensor = 2, .nproc = 4}), "");
  EXPECT_NE(complaints(config, {.tensor = 2}).find("give --nproc 2"), std::string::npos);
  config.prompt.chat = "";
  EXPECT_EQ(complaints(config, {.nproc = 1}), "");
  EXPECT_NE(complaints(config, {.nproc = 2}).find("--chat without a file is a conversation"),
            std::string::npos);
  config.prompt.chat = "chat.json";
  EXPECT_EQ(complaints(config, {.nproc = 2}), "");
  config.run.int8 = true;
  EXPECT_EQ(complaints(config, {.nproc = 2}), "");
  EXPECT_NE(complaints(config, {.tensor = 2, .nproc = 2}).find("--int8 and --tensor-model-parallel-size 2"),
            std::string::npos);
}

}  // namespace
}  // namespace megalith
