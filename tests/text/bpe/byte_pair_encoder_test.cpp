#include "libcore/text/bpe/byte_pair_encoder.h"

#include <algorithm>
#include <map>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "libcore/base/machine/isa.h"
#include "libcore/text/identity_hash.h"
#include "tests/support/environment.h"

namespace megalith {
namespace {

using Merge = BytePairEncoder::Merge;

std::array<int32_t, 256> identity() {
  std::array<int32_t, 256> ids;
  for (int32_t i = 0; i < 256; ++i) ids[static_cast<size_t>(i)] = i;
  return ids;
}

/// The definition: repeatedly join the first pair with the lowest rank.
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
  std::vector<int32_t> ids{-7};  // encode() must replace it
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

TEST(BytePairEncoder, TakesTheLaterRankOfAPairThatIsListedTwice) {
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

TEST(BytePairEncoder, HashesTheSameMergesAlikeInWhateverOrderTheyAreGiven) {
  // If the rank is the token, all merges have the same rank.
  std::vector<Merge> merges = {{'a', 'a', 256}};
  for (int32_t left = 0; left < 255; ++left) merges.push_back({left, 255 - left, 257});
  const auto hash = [](std::span<const Merge> given) {
    IdentityHash list;
    BytePairEncoder(identity(), given, MergeRanks::kToken).add_to(list);
    return list.hex();
  };
  const std::string first = hash(merges);
  std::shuffle(merges.begin(), merges.end(), std::mt19937(1));
  EXPECT_EQ(hash(merges), first);
  merges.pop_back();
  EXPECT_NE(hash(merges), first);
}

/// Random merges over the letters a, b and c, ranked in random order. No two merges give the same text.
std::vector<Merge> random_merges(std::mt19937& random) {
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
  return merges;
}

std::string random_text(size_t bytes, std::mt19937& random) {
  std::string text(bytes, 'a');
  for (char& c : text) c = "abc"[random() % 3];
  return text;
}

TEST(BytePairEncoder, EqualsTheDefinitionForShortAndLongPretokens) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Merge> merges = random_merges(random);
    const BytePairEncoder encoder(identity(), merges);
    for (size_t bytes : {0, 1, 2, 3, 17, 63, 64, 65, 66, 150}) {
      const std::string text = random_text(bytes, random);
      ASSERT_EQ(encode(encoder, text), naive(text, merges)) << text;
    }
  }
}

TEST(BytePairEncoder, MergesManyShortPiecesAsItMergesOne) {
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2}) {
    if (isa > best_isa()) continue;
    const test::Variable chosen("MEGALITH_ISA", name(isa));
    std::mt19937 random(2);
    for (size_t round = 0; round < 300; ++round) {
      std::vector<Merge> merges = random_merges(random);
      if (round % 2 == 0) {  // every other time, ids can serve as ranks
        std::sort(merges.begin(), merges.end(), [](auto& a, auto& b) { return a.merged < b.merged; });
        // a merge whose pair and rank have only zero bits
        merges.insert(merges.begin(), {0, 0, round % 4 == 0 ? 0 : 255});
      }
      const BytePairEncoder encoder(identity(), merges);
      std::vector<std::string> texts;
      for (size_t i = 0; i < round % 40; ++i) texts.push_back(random_text(1 + random() % 15, random));
      for (std::string& text : texts)
        if (random() % 4 == 0) std::replace(text.begin(), text.end(), 'b', '\0');
      std::vector<PieceKey> keys;
      for (const std::string& text : texts) keys.push_back(PieceKey::of(text));
      std::vector<MergedPiece> merged(texts.size());
      encoder.encode_short(keys, merged.data());
      for (size_t i = 0; i < texts.size(); ++i) {
        const auto first = merged[i].ids.begin();
        ASSERT_EQ(std::vector(first, first + static_cast<std::ptrdiff_t>(merged[i].count)),
                  naive(texts[i], merges))
            << texts[i];
      }
    }
  }
}

}  // namespace
}  // namespace megalith
