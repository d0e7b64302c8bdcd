#include "libcore/text/bpe/long_merge.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "libcore/base/error.h"
#include "libcore/text/bpe/byte_pair_encoder.h"

namespace megalith {
namespace {

using Merge = BytePairEncoder::Merge;

std::array<int32_t, 256> identity() {
  std::array<int32_t, 256> ids;
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

/// Merges by definition, with the encoder's ranks: if a pair appears twice, its later rank counts; with
/// MergeRanks::kToken, all pairs that make one token have the same rank.
class Naive {
 public:
  Naive(const std::vector<Merge>& merges, MergeRanks ranks, const std::vector<uint32_t>& given = {}) {
    for (size_t i = 0; i < merges.size(); ++i)
      pairs_[{merges[i].left, merges[i].right}] = {ranks == MergeRanks::kGiven ? given[i]
                                                   : ranks == MergeRanks::kToken
                                                       ? static_cast<size_t>(merges[i].merged)
                                                       : i,
                                                   merges[i].merged};
  }
  std::vector<int32_t> operator()(std::vector<int32_t> ids) const {
    while (true) {
      size_t best = std::numeric_limits<size_t>::max(), best_at = 0;
      int32_t merged = 0;
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = pairs_.find({ids[i], ids[i + 1]});
        if (found == pairs_.end() || found->second.rank >= best) continue;
        best = found->second.rank;
        best_at = i;
        merged = found->second.merged;
      }
      if (best == std::numeric_limits<size_t>::max()) return ids;
      ids[best_at] = merged;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
    }
  }

 private:
  struct Pair {
    size_t rank;
    int32_t merged;
  };
  std::map<std::pair<int32_t, int32_t>, Pair> pairs_;
};

std::vector<int32_t> bytes_of(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

struct InWindows {
  std::vector<int32_t> ids;
  size_t longest = 0;  // most tokens handed over at once
};

InWindows in_windows(const BytePairEncoder& encoder, std::string_view text, size_t window) {
  InWindows out;
  encoder.encode_long(
      text,
      [&](std::span<const int32_t> some) {
        out.ids.insert(out.ids.end(), some.begin(), some.end());
        out.longest = std::max(out.longest, some.size());
      },
      window);
  return out;
}

struct Vocabulary {
  std::vector<Merge> merges;
  std::string alphabet;
  MergeRanks ranks = MergeRanks::kOrder;
  std::vector<uint32_t> given = {};  // with MergeRanks::kGiven
};

/// Random merges of existing tokens, with ranks in any order. Several merges may give the same text, with one
/// id or with different ids, and some tokens cannot be reached.
Vocabulary random_vocabulary(std::mt19937& random) {
  Vocabulary out;
  out.alphabet = std::string("abcd").substr(0, 1 + random() % 4);
  const std::array kRanks = {MergeRanks::kOrder, MergeRanks::kToken, MergeRanks::kGiven};
  out.ranks = kRanks[random() % kRanks.size()];
  std::vector<std::pair<std::string, int32_t>> tokens;
  std::map<std::string, int32_t> ids;
  for (const char c : out.alphabet) {
    tokens.emplace_back(std::string(1, c), c);
    ids[tokens.back().first] = c;
  }
  const size_t longest = 2 + random() % 12;
  const bool twins = random() % 5 == 0;
  int32_t next = 256;
  for (size_t n = 1 + random() % 40; n > 0; --n) {
    const auto& [left, left_id] = tokens[random() % tokens.size()];
    const auto& [right, right_id] = tokens[random() % tokens.size()];
    if (left.size() + right.size() > longest) continue;
    const auto [known, is_new] = ids.emplace(left + right, next);
    if (!is_new && twins && random() % 2 == 0) known->second = next;
    out.merges.push_back({left_id, right_id, known->second});
    if (known->second == next) tokens.emplace_back(left + right, next++);
  }
  if (random() % 2 == 0) std::shuffle(out.merges.begin(), out.merges.end(), random);
  if (out.ranks == MergeRanks::kGiven) {  // each pair once: a pair has one rank
    std::set<std::pair<int32_t, int32_t>> pairs;
    std::erase_if(out.merges, [&](const Merge& m) { return !pairs.emplace(m.left, m.right).second; });
    for (size_t levels = 1 + random() % 5, i = 0; i < out.merges.size(); ++i)
      out.given.push_back(static_cast<uint32_t>(random() % levels));
  }
  return out;
}

/// Random letters, a repeated random text, or runs of one letter.
std::string random_text(const std::string& alphabet, std::mt19937& random) {
  const auto letter = [&] { return alphabet[random() % alphabet.size()]; };
  const size_t size = 1 + random() % 120;
  std::string text;
  switch (random() % 3) {
    case 0:
      while (text.size() < size) text += letter();
      break;
    case 1: {
      std::string period;
      for (size_t n = 1 + random() % 5; n > 0; --n) period += letter();
      while (text.size() < size) text += period;
      break;
    }
    default:
      while (text.size() < size) text.append(1 + random() % 20, letter());
  }
  return text;
}

TEST(LongMerge, EqualsTheDefinitionForAnyMergesAndWindows) {
  std::mt19937 random(11);
  size_t in_parts = 0, strings = 0;
  for (int round = 0; round < 5000; ++round) {
    const Vocabulary vocabulary = random_vocabulary(random);
    const BytePairEncoder encoder(identity(), vocabulary.merges, vocabulary.ranks, std::nullopt,
                                  vocabulary.given);
    const Naive naive(vocabulary.merges, vocabulary.ranks, vocabulary.given);
    for (int i = 0; i < 4; ++i) {
      const std::string text = random_text(vocabulary.alphabet, random);
      const std::vector<int32_t> wanted = naive(bytes_of(text));
      for (size_t repeat = 0; repeat < 5; ++repeat, ++strings) {
        const size_t window = 1 + random() % 40;
        const InWindows found = in_windows(encoder, text, window);
        ASSERT_EQ(found.ids, wanted) << text << " in windows of " << window;
        in_parts += found.longest < wanted.size();
      }
      if (vocabulary.ranks != MergeRanks::kGiven) continue;
      std::vector<int32_t> at_once;
      encoder.encode(text, at_once);
      ASSERT_EQ(at_once, wanted) << text;
      const std::string word = text.substr(0, PieceKey::kLongest);
      MergedPiece merged;
      encoder.encode_short(std::vector{PieceKey::of(word)}, &merged);
      const auto ids = std::span(merged.ids).first(merged.count);
      ASSERT_EQ(std::vector(ids.begin(), ids.end()), naive(bytes_of(word))) << word;
    }
  }
  EXPECT_EQ(strings, 100'000U);
  EXPECT_GT(in_parts, strings / 2);  // windows did settle tokens before the end
}

TEST(LongMerge, EqualsTheDefinitionWhereATokenIsPartOfItself) {
  for (const std::vector<Merge>& merges : {std::vector<Merge>{{0, 0, 0}},
                                           {{'a', 'a', 'a'}, {'a', 'b', 'c'}},
                                           {{'a', 'b', 'a'}, {'a', 'a', 'b'}}}) {
    const BytePairEncoder encoder(identity(), merges);
    std::mt19937 random(12);
    for (int i = 0; i < 200; ++i) {
      const std::string text = random_text(std::string("ab\0c", 4), random);
      ASSERT_EQ(in_windows(encoder, text, 4).ids, Naive(merges, MergeRanks::kOrder)(bytes_of(text)));
    }
  }
}

// Merges that make runs of 2, 4, 8, … times "a", so that a window's tokens depend on where it begins.
std::vector<Merge> powers(int count) {
  std::vector<Merge> merges;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t before = i == 0 ? 'a' : 255 + i;
    merges.push_back({before, before, 256 + i});
  }
  return merges;
}

TEST(LongMerge, SplitsARunOfOneLetterAsALoopCountsIt) {
  const BytePairEncoder encoder(identity(), powers(6));
  for (size_t n = 1; n < 700; ++n) {
    std::vector<int32_t> wanted(n / 64, 261);
    for (int bit = 5; bit >= 0; --bit)
      if ((n >> bit & 1) != 0) wanted.push_back(bit == 0 ? 'a' : 255 + bit);
    ASSERT_EQ(in_windows(encoder, std::string(n, 'a'), 100).ids, wanted) << n;
  }
}

TEST(LongMerge, HandsOverAWindowAtATime) {
  const BytePairEncoder encoder(identity(), powers(3));
  const InWindows found = in_windows(encoder, std::string(1 << 20, 'a'), 1024);
  EXPECT_EQ(found.ids, std::vector<int32_t>(1 << 17, 258));
  EXPECT_LE(found.longest, 2 * 1024 / 8U);
}

// In the text 1 2 3 … n each pair of neighbours may join, later pairs first. So all tokens depend on where
// the text ends.
TEST(LongMerge, WaitsForWhatDecides) {
  std::vector<Merge> merges;
  constexpr int32_t kLetters = 60;
  for (int32_t i = kLetters - 1; i > 0; --i) merges.push_back({i, i + 1, 256 + i});
  const BytePairEncoder encoder(identity(), merges);
  const Naive naive(merges, MergeRanks::kOrder);
  for (int32_t n = 1; n <= kLetters; ++n) {
    std::string text;
    for (int32_t i = 1; i <= n; ++i) text += static_cast<char>(i);
    for (const size_t window : {1, 4, 16}) {
      const InWindows found = in_windows(encoder, text + text, window);
      ASSERT_EQ(found.ids, naive(bytes_of(text + text))) << n;
    }
  }
}

// The ids have addresses but no memory: they must be refused before anything is read there.
TEST(WindowMerge, RefusesMoreThanItsPlacesCanCount) {
  constexpr size_t kTooMany = WindowMerge::kMaxIds + 1;
  void* const nowhere = ::mmap(nullptr, kTooMany * sizeof(int32_t), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(nowhere, MAP_FAILED);
  std::vector<WindowMerge::Token> tokens;
  try {
    WindowMerge(MergeTables{}).run({static_cast<const int32_t*>(nowhere), kTooMany}, tokens);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("4294967295"), std::string::npos) << error.what();
  }
  ::munmap(nowhere, kTooMany * sizeof(int32_t));
}

TEST(TokenReach, IsTheLongestTokenThatBeginsWithAnId) {
  // makes ab, abc, bc and bcab, listed in no order; d joins nothing
  const std::vector<Merge> merges = {{256, 'c', 257}, {'a', 'b', 256}, {'b', 'c', 258}, {258, 256, 259}};
  const TokenReach reach(merges);
  EXPECT_TRUE(reach.bounded());
  EXPECT_EQ(reach.longest(), 4U);
  EXPECT_EQ(reach.of('a'), 3U);
  EXPECT_EQ(reach.of('b'), 4U);
  EXPECT_EQ(reach.of('c'), 1U);
  EXPECT_EQ(reach.of('d'), 1U);
  EXPECT_EQ(reach.of(1'000'000), 1U);
}

TEST(TokenReach, IsUnboundedWhereATokenIsPartOfItselfOrHuge) {
  EXPECT_FALSE(TokenReach(std::vector<Merge>{{1, 2, 1}}).bounded());
  EXPECT_FALSE(TokenReach(std::vector<Merge>{{1, 2, 3}, {3, 3, 2}}).bounded());
  EXPECT_TRUE(TokenReach(powers(12)).bounded());
  EXPECT_FALSE(TokenReach(powers(13)).bounded());
}

}  // namespace
}  // namespace megalith
