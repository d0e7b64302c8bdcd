#include "libcore/text/bpe/cache/piece_lookup.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/machine/isa.h"

namespace megalith {
namespace {

/// A random text and the ends of its pieces.
struct CutText {
  std::string text;
  std::vector<uint32_t> ends;
};
CutText random_text(std::mt19937& random, size_t pieces) {
  CutText cut;
  for (size_t i = 0; i < pieces; ++i) {
    const size_t size = 1 + random() % (random() % 16 ? 15 : 40);
    for (size_t byte = 0; byte < size; ++byte) cut.text += static_cast<char>(random());
    cut.ends.push_back(static_cast<uint32_t>(cut.text.size()));
  }
  return cut;
}

TEST(TakeKeys, GivesTheKeysAndLinesOfShortPieces) {
  const TakeKeys take_keys = piece_lookup(best_isa()).take_keys;
  if (take_keys == nullptr) GTEST_SKIP() << "this processor has no AVX-512";
  const PieceTable table(9, false);
  std::mt19937 random(1);
  size_t all = 0;
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const CutText cut = random_text(random, 1 + random() % 60);
    const size_t pieces = cut.ends.size(), skipped = random() % pieces;
    const uint32_t begin = skipped == 0 ? 0 : cut.ends[skipped - 1];
    const auto ends = std::span(cut.ends).subspan(skipped);
    std::vector<uint32_t> begins(ends.size());
    std::vector<PieceKey> keys(ends.size());
    std::vector<const PieceTable::Line*> lines(ends.size());
    const size_t taken =
        take_keys(table, {cut.text, begin, ends}, {begins.data(), keys.data(), lines.data()});
    uint32_t at = begin;
    for (size_t i = 0; i < taken; ++i) {
      const std::string_view piece = std::string_view(cut.text).substr(at, ends[i] - at);
      ASSERT_EQ(begins[i], at);
      ASSERT_LE(piece.size(), PieceKey::kLongest);
      ASSERT_EQ(keys[i], PieceKey::of(piece));
      ASSERT_EQ(lines[i], &table.line(PieceKey::of(piece)));
      at = ends[i];
    }
    all += taken;
    if (taken == ends.size()) continue;
    const bool longer = ends[taken] - at > PieceKey::kLongest, few = ends.size() - taken < kTogether;
    const size_t eighth = std::min(taken / kTogether * kTogether + kTogether, ends.size()) - 1;
    const uint32_t last = eighth == 0 ? begin : ends[eighth - 1];
    EXPECT_TRUE(longer || few || last + sizeof(PieceKey) > cut.text.size());
  }
  EXPECT_GT(all, 10'000U);
}

TEST(FindEntries, FindsWhatThereIs) {
  const FindEntries find_entries = piece_lookup(best_isa()).find_entries;
  PieceTable table(7, false);  // 256 entries
  std::mt19937 random(2);
  const auto piece = [&] { return PieceKey::of("piece " + std::to_string(random() % 400)); };
  for (int32_t id = 0; id < 150; ++id) table.add(piece(), table.pack(std::vector<int32_t>{id}));
  size_t known = 0;
  for (int repeat = 0; repeat < 500; ++repeat) {
    const size_t count = random() % 60;
    std::vector<PieceKey> keys;
    std::vector<const PieceTable::Line*> lines;
    for (size_t i = 0; i < count; ++i) {
      keys.push_back(piece());
      lines.push_back(&table.line(keys.back()));
    }
    const auto first = static_cast<uint16_t>(random() % 1000);
    std::vector<const PieceTable::Entry*> entries(count);
    std::vector<uint16_t> unknown(count + kTogether), wanted;
    unknown.resize(find_entries({keys.data(), lines.data(), count}, {entries.data(), unknown.data(), first}));
    for (size_t i = 0; i < count; ++i) {
      const auto& both = lines[i]->entries;
      const auto found =
          std::find_if(both.begin(), both.end(), [&](const auto& e) { return e.key == keys[i]; });
      if (found == both.end())
        wanted.push_back(static_cast<uint16_t>(first + i));
      else
        EXPECT_EQ(entries[i], &*found);
    }
    EXPECT_EQ(unknown, wanted);
    std::vector<uint16_t> generic(count + kTogether);
    generic.resize(
        find_entries_generic({keys.data(), lines.data(), count}, {entries.data(), generic.data(), first}));
    EXPECT_EQ(generic, wanted);
    known += count - wanted.size();
  }
  EXPECT_GT(known, 1000U);
}

}  // namespace
}  // namespace megalith
