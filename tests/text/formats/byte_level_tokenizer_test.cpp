#include "libcore/text/formats/byte_level_tokenizer.h"

#include <array>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/text/formats/gpt2_files.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

/// Bytes, each with its value as id, and the tokens "ab", which a merge makes, and "abc", which no merge
/// makes.
ByteLevelModel small_model() {
  ByteLevelModel model;
  model.name = "small";
  for (int32_t byte = 0; byte < 256; ++byte) {
    model.tokens.emplace_back(1, static_cast<char>(byte));
    model.byte_ids[static_cast<size_t>(byte)] = byte;
  }
  model.tokens.emplace_back("ab");
  model.tokens.emplace_back("abc");
  model.merges = {{'a', 'b', 256}};
  return model;
}

TEST(ByteLevelTokenizer, TakesATokenThatNoMergeReachesOnlyWhereMergesAreIgnored) {
  ByteLevelModel model = small_model();
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(test::encode(ByteLevelTokenizer(model), "abc"), (std::vector<int32_t>{256, 'c'}));
  model.ignore_merges = true;
  const ByteLevelTokenizer tokenizer(model);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(test::encode(tokenizer, "abc"), (std::vector<int32_t>{257}));
    EXPECT_EQ(test::encode(tokenizer, "abcd"), (std::vector<int32_t>{256, 'c', 'd'}));
  }
}

TEST(ByteLevelTokenizer, GivesThreadsThatBeginTogetherTheSameIds) {
  ByteLevelModel model = small_model();
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(random() % 5 == 0 ? ' ' : 'a' + random() % 3);
  const ByteLevelTokenizer alone(model);
  const std::vector<int32_t> right = test::encode(alone, text);
  for (int round = 0; round < 20; ++round) {
    const ByteLevelTokenizer tokenizer(model);
    std::array<std::vector<int32_t>, 2> ids;
    {
      std::vector<std::jthread> threads;
      for (auto& own : ids) threads.emplace_back([&] { tokenizer.encode(text, own); });
    }
    EXPECT_EQ(ids[0], right);
    EXPECT_EQ(ids[1], right);
    EXPECT_EQ(test::encode(tokenizer, text), right);
  }
}

TEST(ByteLevelTokenizer, GivesTheSameIdsForWhateverTextIsExpected) {
  const std::string text = "abc ab cab abcabc";
  const std::vector<int32_t> right = test::encode(ByteLevelTokenizer(small_model()), text);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{150'000'000}, Tokenizer::kUnknownSize}) {
    ByteLevelTokenizer tokenizer(small_model());
    tokenizer.expect(bytes);
    EXPECT_EQ(test::encode(tokenizer, text), right);
    tokenizer.expect(0);  // too late to change the cache
    EXPECT_EQ(test::encode(tokenizer, text), right);
  }
}

/// Repeated short strings with and without borders, as pretokens of all sizes around that of a giant.
std::string giants(std::mt19937& random) {
  static const std::vector<std::string> kKinds = {"a",       "he",       "-", " ", "\u65e5\u672c",
                                                  "\u0434a", "x\u6c34he"};
  std::string text;
  while (text.size() < 2'000'000) {
    const std::string& kind = kKinds[random() % kKinds.size()];
    const size_t most = random() % 3 == 0 ? 10 : random() % 2 == 0 ? 70'000 : 300'000;
    for (size_t n = 1 + random() % most / kind.size(); n > 0; --n) text += kind;
    if (random() % 2 == 0) text += " the ";
  }
  return text;
}

TEST(ByteLevelTokenizer, EncodesGiantPretokensAsOthers) {
  for (const bool whole : {false, true}) {
    ByteLevelModel model = read_gpt2_files(test::trained("vocab.json"), test::trained("merges.txt"));
    model.ignore_merges = whole;
    model.tokens.emplace_back("hehe");  // no merge makes it
    const BytePairEncoder encoder(model.byte_ids, model.merges);
    const ByteLevelTokenizer tokenizer(model);
    std::mt19937 random(22);
    for (int round = 0; round < 3; ++round) {
      const std::string text = giants(random);
      std::vector<int32_t> wanted, piece;
      for_each_pretoken(model.find_pretokens, text, [&](std::string_view pretoken) {
        encoder.encode(pretoken, piece);
        wanted.insert(wanted.end(), piece.begin(), piece.end());
      });
      EXPECT_TRUE(test::encode(tokenizer, text) == wanted);
      std::vector<int32_t> joined;
      size_t longest = 0;
      tokenizer.encode_in_parts(text, [&](std::span<const int32_t> ids) {
        joined.insert(joined.end(), ids.begin(), ids.end());
        longest = std::max(longest, ids.size());
      });
      EXPECT_TRUE(joined == wanted);
      EXPECT_LT(longest, size_t{1} << 18);
    }
  }
}

}  // namespace
}  // namespace megalith
