#include "libcore/text/piece_cache.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

std::vector<int32_t> find(const PieceCache& cache, std::string_view piece) {
  const auto ids = cache.find(piece);
  return {ids.begin(), ids.end()};
}

TEST(PieceCache, FindsWhatWasPut) {
  PieceCache cache(4);
  const std::vector<int32_t> one = {5}, four = {1, 2, 3, 0};
  cache.put("the", one);
  cache.put(std::string(15, 'x'), four);
  EXPECT_EQ(find(cache, "the"), one);
  EXPECT_EQ(find(cache, std::string(15, 'x')), four);
  EXPECT_TRUE(cache.find("th").empty());
  EXPECT_TRUE(cache.find("thex").empty());
  EXPECT_TRUE(cache.find("").empty());
}

TEST(PieceCache, TellsZeroBytesFromNone) {
  PieceCache cache(2);
  const std::vector<int32_t> ids = {9};
  cache.put("a", ids);
  EXPECT_TRUE(cache.find(std::string("a\0", 2)).empty());
  EXPECT_TRUE(cache.find(std::string(1, '\0')).empty());
}

TEST(PieceCache, LeavesOutLongPiecesAndManyIds) {
  PieceCache cache(2);
  const std::vector<int32_t> five(5, 1), one = {1};
  cache.put(std::string(16, 'x'), one);
  EXPECT_TRUE(cache.find(std::string(16, 'x')).empty());
  cache.put("abcde", five);
  EXPECT_TRUE(cache.find("abcde").empty());
}

TEST(PieceCache, NeverGivesAnotherPiecesIds) {
  PieceCache cache(1);  // 4 entries for 2000 pieces
  size_t found = 0;
  for (int32_t i = 0; i < 2000; ++i) {
    const std::string piece = std::to_string(i * 7919 % 2000);
    const std::vector<int32_t> ids = {std::stoi(piece)};
    cache.put(piece, ids);
    EXPECT_EQ(find(cache, piece), ids);
    for (int32_t other = 0; other < 2000; other += 97)
      if (const auto known = cache.find(std::to_string(other)); !known.empty()) {
        EXPECT_EQ(known[0], other);
        ++found;
      }
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace megalith
