#include "libcore/text/piece_cache.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Ids = std::vector<int32_t>;

/// Both ways to read the piece: alone in memory, and with text behind it.
template <class Cache>
Ids find(const Cache& cache, const std::string& piece) {
  const auto alone = cache.find(piece, piece.size());
  const std::string longer = piece + std::string(40, '#');
  const auto inside = cache.find(std::string_view(longer).substr(0, piece.size()), longer.size());
  EXPECT_EQ(Ids(alone.begin(), alone.end()), Ids(inside.begin(), inside.end())) << piece;
  return {alone.begin(), alone.end()};
}

TEST(PieceCache, FindsPiecesOfEveryLengthThatItKeeps) {
  PieceCache cache(12);
  for (size_t bytes = 1; bytes <= 31; ++bytes)
    cache.put(std::string(bytes, 'x'), Ids{static_cast<int32_t>(bytes), 7});
  for (size_t bytes = 1; bytes <= 31; ++bytes)
    EXPECT_EQ(find(cache, std::string(bytes, 'x')), (Ids{static_cast<int32_t>(bytes), 7}));
  EXPECT_EQ(find(cache, std::string(32, 'x')), Ids{});
  EXPECT_EQ(find(cache, std::string(31, 'y')), Ids{});
}

TEST(PieceCache, KeepsAsManyIdsAsHaveRoom) {
  PieceCache cache(12);
  const std::string small = "small", large(20, 'l');
  cache.put(small, Ids(4, 1));
  cache.put(large, Ids(7, 2));
  EXPECT_EQ(find(cache, small), Ids(4, 1));
  EXPECT_EQ(find(cache, large), Ids(7, 2));
  cache.put("other", Ids(5, 1));
  cache.put(std::string(21, 'l'), Ids(8, 2));
  cache.put(std::string(32, 'l'), Ids(1, 2));
  EXPECT_EQ(find(cache, "other"), Ids{});
  EXPECT_EQ(find(cache, std::string(21, 'l')), Ids{});
  EXPECT_EQ(find(cache, std::string(32, 'l')), Ids{});
}

TEST(PieceCache, TellsZeroBytesFromNone) {
  PieceCache cache(12);
  cache.put("a", Ids{9});
  cache.put(std::string(16, 'a'), Ids{9});
  EXPECT_EQ(find(cache, std::string("a\0", 2)), Ids{});
  EXPECT_EQ(find(cache, std::string(1, '\0')), Ids{});
  EXPECT_EQ(find(cache, std::string(16, 'a') + '\0'), Ids{});
}

TEST(PieceTable, NeverGivesAnotherPiecesIds) {
  PieceTable<2, 4> table(1);  // 4 entries for 2000 pieces
  size_t found = 0;
  for (int32_t i = 0; i < 2000; ++i) {
    const std::string piece = std::to_string(i * 7919 % 2000);
    table.put(piece, Ids{std::stoi(piece)});
    ASSERT_NE(table.find(piece, piece.size()), nullptr);
    for (int32_t other = 0; other < 2000; other += 97) {
      const std::string text = std::to_string(other);
      if (const auto* known = table.find(text, text.size())) {
        EXPECT_EQ(known->ids[0], other);
        ++found;
      }
    }
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace megalith
