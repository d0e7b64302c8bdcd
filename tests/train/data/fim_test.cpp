#include "libcore/train/data/fim.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> golden_tokenizer() {
  TokenizerFiles files;
  files.type = "HuggingFaceTokenizer";
  files.model = test::test_data("data/goldens/fim/tokenizer.json");
  return make_tokenizer(files);
}

FimConfig config_of(const Json& options) {
  FimConfig config;
  if (const Json* rate = options.find("rate")) config.rate = rate->as_double();
  if (const Json* rate = options.find("spm_rate")) config.spm_rate = rate->as_double();
  if (const Json* rate = options.find("fragment_rate")) config.fragment_rate = rate->as_double();
  if (const Json* token = options.find("split_sample")) config.split_sample = token->as_string();
  if (const Json* text = options.find("no_prefix")) config.no_prefix = text->as_string();
  return config;
}

/// The draws that Megatron's dataset made, which must be asked for as it asked for them.
class RecordedDraws final : public FimDraws {
 public:
  explicit RecordedDraws(const Json::Array& draws) : draws_(draws) {}
  bool happens(double probability) override {
    const Json::Array& draw = next(2);
    EXPECT_EQ(draw[0].as_double(), probability);
    return draw[1].as_int() != 0;
  }
  std::array<int64_t, 2> two_up_to(int64_t max) override {
    const Json::Array& draw = next(3);
    EXPECT_EQ(draw[0].as_int(), max);
    return {draw[1].as_int(), draw[2].as_int()};
  }
  bool all_used() const { return used_ == draws_.size(); }

 private:
  const Json::Array& next(size_t size) {
    const Json::Array& draw = draws_.at(used_++).as_array();
    EXPECT_EQ(draw.size(), size);
    return draw;
  }
  const Json::Array& draws_;
  size_t used_ = 0;
};

Ids ids_of(const Json& list) {
  Ids ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

TEST(FimPermutation, EqualsMegatronsForItsDraws) {
  const std::string path = test::test_data("data/goldens/fim/fim.json");
  const Json golden = Json::parse(read_file(path), path);
  const auto tokenizer = golden_tokenizer();
  int changed = 0;
  for (const Json& one : golden["cases"].as_array()) {
    const FimPermutation fim(config_of(one["options"]), *tokenizer);
    RecordedDraws draws(one["draws"].as_array());
    Ids ids = ids_of(one["ids"]);
    changed += ids != ids_of(one["permuted"]);
    const size_t kept = fim.permute(ids, draws);
    EXPECT_EQ(ids, ids_of(one["permuted"])) << one.dump();
    EXPECT_TRUE(draws.all_used()) << one.dump();
    EXPECT_TRUE(std::all_of(ids.begin() + static_cast<std::ptrdiff_t>(kept), ids.end(),
                            [&](int32_t id) { return id == fim.pad(); }));
  }
  EXPECT_EQ(golden["cases"].as_array().size(), 42U);
  EXPECT_GT(changed, 25);
}

// Two documents without tokens: their ends go, and the sample is filled by hand.
TEST(FimPermutation, FillsWhatBecomesShorter) {
  const auto tokenizer = golden_tokenizer();
  FimConfig config;
  config.rate = 0;
  const FimPermutation fim(config, *tokenizer);
  Ids ids = {0, 0, 70, 71, 0, 72};
  SampleDraws draws(1, 0, 0);
  EXPECT_EQ(fim.permute(ids, draws), 4U);
  EXPECT_EQ(ids, (Ids{70, 71, 0, 72, 4, 4}));
}

TEST(FimPermutation, RefusesATokenThatTheTokenizerDoesNotHave) {
  const auto tokenizer = golden_tokenizer();
  FimConfig config;
  config.suffix = "<SUF>";
  try {
    const FimPermutation fim(config, *tokenizer);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(std::string(error.what()).find("--fim-suffix-token \"<SUF>\": the tokenizer has no such token"),
              0U);
  }
}

// LLaMA-2's form: each text begins with <s>.
TEST(FimPermutation, FindsTheTokensOfATokenizerThatPutsOthersAroundATextToo) {
  TokenizerFiles files;
  files.type = "HuggingFaceTokenizer";
  files.model = test::test_data("text/goldens/hf/llama2.json");
  files.special_tokens = {"<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<|endoftext|>"};
  const auto tokenizer = make_tokenizer(files);
  ASSERT_EQ(tokenizer->around().before.size(), 1U);
  const FimPermutation fim(FimConfig(), *tokenizer);
  EXPECT_EQ(fim.pad(), 603) << "the fourth after the 600 tokens of the file";
  FimConfig config;
  config.pad = "";  // its text is <s> alone
  EXPECT_THROW(FimPermutation(config, *tokenizer), Error);
}

TEST(SampleDraws, DependOnSeedPartAndSampleAlone) {
  const auto drawn = [](int64_t seed, uint32_t part, int64_t sample) {
    SampleDraws draws(seed, part, sample);
    const auto first = draws.two_up_to(1 << 30), second = draws.two_up_to(1 << 30);
    return std::vector<int64_t>{first[0], first[1], second[0], second[1]};
  };
  EXPECT_EQ(drawn(7, 0, 5), drawn(7, 0, 5));
  const std::set<std::vector<int64_t>> all = {drawn(7, 0, 5), drawn(8, 0, 5), drawn(7, 1, 5), drawn(7, 0, 6),
                                              drawn(7, 0, int64_t{5} << 32)};
  EXPECT_EQ(all.size(), 5U);
}

// For 20,000 draws the bounds are more than five standard deviations away.
TEST(SampleDraws, AreUniform) {
  int happened = 0;
  std::array<int, 4> counts = {};
  for (int64_t sample = 0; sample < 20000; ++sample) {
    SampleDraws draws(1234, 0, sample);
    happened += draws.happens(0.3);
    EXPECT_TRUE(draws.happens(1));
    EXPECT_FALSE(draws.happens(0));
    for (const int64_t one : draws.two_up_to(3)) ++counts.at(static_cast<size_t>(one));
  }
  EXPECT_NEAR(happened, 6000, 350);
  for (const int count : counts) EXPECT_NEAR(count, 10000, 450);
}

}  // namespace
}  // namespace megalith
