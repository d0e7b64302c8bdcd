#include "libcore/text/byte_pair_encoder.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Merge = BytePairEncoder::Merge;

std::array<int32_t, 256> identity() {
  std::array<int32_t, 256> ids;
  for (int32_t i = 0; i < 256; ++i) ids[static_cast<size_t>(i)] = i;
  return ids;
}

/// The definition: again and again join the first pair of lowest rank.
std::vector<int32_t> naive(std::string_view bytes, const std::vector<Merge>& merges) {
  std::vector<int32_t> ids;
  for (char c : bytes) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best_rank = merges.size(), best_at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      for (size_t rank = 0; rank < best_rank; ++rank)
        if (merges[rank].left == ids[i] && merges[rank].right == ids[i + 1]) {
          best_rank = rank;
          best_at = i;
        }
    if (best_rank == merges.size()) return ids;
    ids[best_at] = merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

std::vector<int32_t> encode(const BytePairEncoder& encoder, std::string_view bytes) {
  std::vector<int32_t> ids{-7};  // replaced
  encoder.encode(bytes, ids);
  return ids;
}

TEST(BytePairEncoder, JoinsTheLowestRankFirst) {
  const std::vector<Merge> merges = {{'b', 'c', 256}, {'a', 'b', 257}, {'a', 256, 258}};
  const BytePairEncoder encoder(identity(), merges);
  EXPECT_EQ(encode(encoder, "abc"), std::vector<int32_t>{258});
  EXPECT_EQ(encode(encoder, "abab"), (std::vector<int32_t>{257, 257}));
  EXPECT_EQ(encode(encoder, "x"), std::vector<int32_t>{'x'});
  EXPECT_EQ(encode(encoder, ""), std::vector<int32_t>{});
}

TEST(BytePairEncoder, JoinsTheLeftmostOfOneRank) {
  const BytePairEncoder encoder(identity(), std::vector<Merge>{{'a', 'a', 256}});
  EXPECT_EQ(encode(encoder, "aaa"), (std::vector<int32_t>{256, 'a'}));
  EXPECT_EQ(encode(encoder, std::string(101, 'a')).back(), 'a');
}

TEST(BytePairEncoder, TakesTheLaterRankOfAPairThatStandsTwice) {
  const BytePairEncoder encoder(identity(),
                                std::vector<Merge>{{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 256}});
  EXPECT_EQ(encode(encoder, "abc"), (std::vector<int32_t>{'a', 257}));
}

TEST(BytePairEncoder, TakesWaysToOneTokenFromTheLeftWhereRanksAreTokens) {
  const std::vector<Merge> merges = {{'a', 'a', 256}, {'b', 'a', 257}, {'a', 'b', 257}};
  EXPECT_EQ(encode(BytePairEncoder(identity(), merges), "aba"), (std::vector<int32_t>{'a', 257}));
  EXPECT_EQ(encode(BytePairEncoder(identity(), merges, MergeRanks::kToken), "aba"),
            (std::vector<int32_t>{257, 'a'}));
}

TEST(BytePairEncoder, EqualsTheDefinitionForShortAndLongPretokens) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    // Merges of tokens that exist, each text once, in random order of rank.
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::map<std::string, int32_t> ids = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
    std::vector<Merge> merges;
    for (int32_t next = 256; next < 270; ++next) {
      const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
      if (!ids.emplace(left + right, next).second) continue;
      tokens.push_back(left + right);
      merges.push_back({ids[left], ids[right], next});
    }
    std::shuffle(merges.begin(), merges.end(), random);
    const BytePairEncoder encoder(identity(), merges);
    for (size_t bytes : {0, 1, 2, 3, 17, 63, 64, 65, 66, 150}) {
      std::string text(bytes, 'a');
      for (char& c : text) c = "abc"[random() % 3];
      ASSERT_EQ(encode(encoder, text), naive(text, merges)) << text;
    }
  }
}

}  // namespace
}  // namespace megalith
