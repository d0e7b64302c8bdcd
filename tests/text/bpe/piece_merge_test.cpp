#include "libcore/text/bpe/piece_merge.h"

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/text/bpe/byte_pair_encoder.h"
#include "tests/support/isa.h"

namespace megalith {
namespace {

using Merge = BytePairEncoder::Merge;
using Ids = std::vector<int32_t>;

/// Ids from here on are those of joined tokens; lower ones are bytes.
constexpr int32_t kFirstMerged = 256, kMerges = 40;

struct Rules {
  std::vector<Merge> merges;
  std::vector<uint32_t> ranks;
  MergeRanks kind;
};

/// Random merges of the ids of 'a' to 'd' and of those that other merges give. Some pairs give one token.
Rules random_rules(MergeRanks kind, std::mt19937& random) {
  Rules rules{.merges = {}, .ranks = {}, .kind = kind};
  Ids pool = {'a', 'b', 'c', 'd'};
  while (rules.merges.size() < kMerges) {
    const auto next = kFirstMerged + static_cast<int32_t>(rules.merges.size());
    const bool is_same = next > kFirstMerged && random() % 4 == 0;
    const Merge merge = {pool[random() % pool.size()], pool[random() % pool.size()],
                         is_same ? rules.merges[random() % rules.merges.size()].merged : next};
    const bool is_known = std::any_of(rules.merges.begin(), rules.merges.end(), [&](const Merge& other) {
      return other.left == merge.left && other.right == merge.right;
    });
    if (is_known) continue;
    rules.merges.push_back(merge);
    pool.push_back(merge.merged);
  }
  std::shuffle(rules.merges.begin(), rules.merges.end(), random);
  // Given ranks are shared by three pairs each, most of which give different tokens.
  for (uint32_t i = 0; i < rules.merges.size(); ++i)
    rules.ranks.push_back(kind == MergeRanks::kOrder   ? i
                          : kind == MergeRanks::kToken ? static_cast<uint32_t>(rules.merges[i].merged)
                                                       : i / 3);
  return rules;
}

/// The definition: joins the leftmost pair of the least rank until no pair has one.
Ids naive(Ids ids, const Rules& rules) {
  while (true) {
    size_t best_at = ids.size(), best = 0;
    for (size_t at = 0; at + 1 < ids.size(); ++at)
      for (size_t i = 0; i < rules.merges.size(); ++i)
        if (rules.merges[i].left == ids[at] && rules.merges[i].right == ids[at + 1] &&
            (best_at == ids.size() || rules.ranks[i] < rules.ranks[best])) {
          best_at = at;
          best = i;
        }
    if (best_at == ids.size()) return ids;
    ids[best_at] = rules.merges[best].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

std::array<int32_t, 256> identity() {
  std::array<int32_t, 256> ids;
  for (int32_t i = 0; i < 256; ++i) ids[static_cast<size_t>(i)] = i;
  return ids;
}

/// The tables of an encoder with these rules, and what they refer to.
class Tables {
 public:
  explicit Tables(const Rules& rules)
      : bytes_(identity()),
        encoder_(bytes_, rules.merges, rules.kind, std::nullopt,
                 rules.kind == MergeRanks::kGiven ? std::span<const uint32_t>(rules.ranks)
                                                  : std::span<const uint32_t>()) {}

  MergeTables get() const {
    const BytePairEncoder::Arrays& arrays = encoder_.arrays();
    return {.buckets = arrays.buckets.data(),
            .shift = 64 - std::countr_zero(arrays.buckets.size()),
            .merged = arrays.merged.empty() ? nullptr : arrays.merged.data(),
            .byte_ranks = arrays.byte_ranks.data(),
            .byte_ids = bytes_.data(),
            .ties = arrays.ties.empty() ? nullptr : arrays.ties.data(),
            .ties_shift = arrays.ties.empty() ? 0 : 64 - std::countr_zero(arrays.ties.size())};
  }

 private:
  std::array<int32_t, 256> bytes_;
  BytePairEncoder encoder_;
};

/// Some symbols; with `merged` also such as merging gives.
Ids random_symbols(size_t n, bool merged, std::mt19937& random) {
  Ids ids(n);
  for (int32_t& id : ids)
    id = merged && random() % 3 == 0 ? kFirstMerged + static_cast<int32_t>(random() % kMerges)
                                     : 'a' + static_cast<int32_t>(random() % 4);
  return ids;
}

/// Calls check(rules, tables, merging, what) with every implementation and kind of ranks.
template <class Check>
void with_all(int rounds, const Check& check) {
  for (const Isa isa : test::runnable_isas())
    for (const MergeRanks kind : {MergeRanks::kOrder, MergeRanks::kToken, MergeRanks::kGiven}) {
      std::mt19937 random(3);
      for (int round = 0; round < rounds; ++round) {
        const Rules rules = random_rules(kind, random);
        const Tables tables(rules);
        check(rules, tables.get(), piece_merging(isa), random,
              concat(name(isa), ", ranks ", static_cast<int>(kind), ", round ", round));
      }
    }
}

TEST(PieceMerge, MergesOnePieceOfAnyLengthAsTheDefinitionDoes) {
  constexpr int32_t kAfter = -9;  // behind the piece, where nothing may be written
  int joined = 0;
  with_all(4, [&](const Rules& rules, const MergeTables& tables, const PieceMerging& merging,
                  std::mt19937& random, const std::string& what) {
    for (size_t n = 0; n <= kMostSymbols; ++n)
      for (const bool of_bytes : {false, true}) {
        const Ids ids = random_symbols(n, !of_bytes, random);
        const std::vector<uint8_t> bytes(ids.begin(), ids.end());
        Ids found = ids;
        found.push_back(kAfter);
        const size_t count = merging.one(tables, of_bytes ? bytes.data() : nullptr, found.data(), n);
        ASSERT_LE(count, n) << what;
        ASSERT_EQ(found.back(), kAfter) << what;
        found.resize(count);
        ASSERT_EQ(found, naive(ids, rules)) << what << ", " << n << " symbols, of bytes " << of_bytes;
        joined += count < n;
      }
  });
  EXPECT_GT(joined, 1000);
}

// More pieces than are merged side by side, of all lengths and in random order; some have no symbols.
TEST(PieceMerge, MergesManyPiecesOfSymbolsAsTheDefinitionDoes) {
  int joined = 0;
  with_all(12, [&](const Rules& rules, const MergeTables& tables, const PieceMerging& merging,
                   std::mt19937& random, const std::string& what) {
    for (const size_t count : {0, 1, 15, 16, 17, 50}) {
      std::vector<Ids> given;
      std::vector<MergedPiece> pieces(count);
      std::vector<MergedPiece*> wanted;
      for (MergedPiece& piece : pieces) {
        given.push_back(random_symbols(random() % (PieceKey::kLongest + 1), true, random));
        piece.ids.fill(kFirstMerged);  // what is behind the symbols must not matter
        piece.count = given.back().size();
        std::copy(given.back().begin(), given.back().end(), piece.ids.begin());
        wanted.push_back(&piece);
      }
      std::shuffle(wanted.begin(), wanted.end(), random);
      merging.symbols(tables, wanted);
      for (size_t i = 0; i < count; ++i) {
        const auto first = pieces[i].ids.begin();
        ASSERT_LE(pieces[i].count, given[i].size()) << what;
        ASSERT_EQ(Ids(first, first + static_cast<std::ptrdiff_t>(pieces[i].count)), naive(given[i], rules))
            << what << ", piece " << i << " of " << count;
        joined += pieces[i].count < given[i].size();
      }
    }
  });
  EXPECT_GT(joined, 1000);
}

}  // namespace
}  // namespace megalith
