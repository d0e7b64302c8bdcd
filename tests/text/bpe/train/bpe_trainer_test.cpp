#include "libcore/text/bpe/train/bpe_trainer.h"

#include "libcore/text/bpe/train/training_corpus.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

PieceCounts counts(const std::vector<std::pair<std::string, int64_t>>& pieces) {
  PieceCounts out;
  for (const auto& [piece, times] : pieces) out.add(piece, times);
  return out;
}

std::vector<std::string> learned(const TrainedBpe& trained) {
  return {trained.tokens.begin() + 256, trained.tokens.end()};
}

using Tokens = std::vector<std::string>;

TEST(TrainBpe, MergesTheMostFrequentPairFirst) {
  // Expected by hand: "ab" with count 5, then "abc" with 4 (from "ab" + "c"), then "xy" with 3.
  const TrainedBpe trained = train_bpe(counts({{"abc", 4}, {"ab", 1}, {"xy", 3}}), 300, {});
  EXPECT_EQ(learned(trained), (Tokens{"ab", "abc", "xy"}));
}

TEST(TrainBpe, BreaksTiesByTheSmallerIds) {
  EXPECT_EQ(learned(train_bpe(counts({{"zy", 2}, {"ab", 2}, {"ac", 2}}), 300, {})),
            (Tokens{"ab", "ac", "zy"}));
  // Ids are in the order of characters: "Ġ" (blank) comes after the printable characters, and new tokens come
  // last.
  EXPECT_EQ(learned(train_bpe(counts({{" a", 2}, {"zz", 2}}), 300, {})), (Tokens{"zz", "\u0120a"}));
}

TEST(TrainBpe, CountsRunsAsNeighboursAndMergesThemFromTheLeft) {
  // "aaaaa": (a, a) 4 times gives [aa aa a]; (b, b) twice gives [bb b]; of the remaining pairs, once each,
  // (aa, a) has the smaller ids and gives [aa aaa].
  EXPECT_EQ(learned(train_bpe(counts({{"aaaaa", 1}, {"bbb", 1}}), 300, {})),
            (Tokens{"aa", "bb", "aaa", "aaaaa", "bbb"}));
}

TEST(TrainBpe, StopsWhenEveryPretokenIsOneToken) {
  const TrainedBpe trained = train_bpe(counts({{"ab", 1}}), 1000, {"<|endoftext|>"});
  EXPECT_EQ(trained.tokens.size(), 258u);
  EXPECT_EQ(train_bpe(PieceCounts(), 1000, {}).tokens.size(), 256u);
}

TEST(TrainBpe, StopsAtTheVocabularysSize) {
  EXPECT_EQ(train_bpe(counts({{"abcdef", 1}}), 259, {"<|endoftext|>"}).merges.size(), 2u);
  EXPECT_EQ(train_bpe(counts({{"abcdef", 1}}), 257, {"<|endoftext|>"}).merges.size(), 0u);
}

TEST(TrainBpe, RefusesAVocabularyWithoutRoomForTheBytes) {
  test::expect_error(ErrorKind::kUsage, {"--vocab-size 256", "at least 257"},
                     [] { train_bpe(PieceCounts(), 256, {"<|endoftext|>"}); });
}

TEST(TrainBpe, DoesNotDependOnTheOrderOfThePretokens) {
  std::vector<std::pair<std::string, int64_t>> pieces;
  for (int64_t i = 0; i < 500; ++i) pieces.emplace_back(std::to_string(i * i * 7919), i % 7 + 1);
  const TrainedBpe forward = train_bpe(counts(pieces), 400, {});
  std::reverse(pieces.begin(), pieces.end());
  const TrainedBpe backward = train_bpe(counts(pieces), 400, {});
  EXPECT_EQ(forward.tokens, backward.tokens);
  EXPECT_GT(forward.merges.size(), 100u);
}

TEST(PieceCounts, AddsUp) {
  PieceCounts a, b;
  for (int i = 0; i < 5000; ++i) a.add(std::to_string(i % 1700));
  b.add("7", 10);
  b.add("new");
  b.add(std::string(3 << 20, 'x'));  // larger than a block
  a.add(b);
  EXPECT_EQ(a.size(), 1702u);
  EXPECT_EQ(a.count("7"), 13);
  EXPECT_EQ(a.count("1699"), 2);
  EXPECT_EQ(a.count("new"), 1);
  EXPECT_EQ(a.count(std::string(3 << 20, 'x')), 1);
  EXPECT_EQ(a.count("absent"), 0);
  int64_t total = 0;
  a.for_each([&](std::string_view, int64_t times) { total += times; });
  EXPECT_EQ(total, 5012);
}

}  // namespace
}  // namespace megalith
