#include "libcore/parallel/exchange_cut.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

/// The rows of the pieces, and the ranks that have them.
std::pair<Ranges, Ranges> cut(const ExchangeCut& by, const ExchangedRows& whole) {
  std::pair<Ranges, Ranges> out;
  for (const RowPiece& piece : by.pieces(whole)) {
    out.first.emplace_back(piece.begin, piece.end);
    out.second.emplace_back(piece.places.first, piece.places.last);
  }
  return out;
}

TEST(ExchangeCut, HasPiecesThatAreLargeEnoughAndNotTooMany) {
  const auto count = [](const ExchangeCut& by, size_t bytes, int ranks) {
    return by.pieces({.rows = 100, .bytes = bytes, .ranks = ranks}).size();
  };
  EXPECT_EQ(count({}, size_t{1} << 40, 2), 1U);
  const ExchangeCut by{.most = 4, .least_bytes = 10};
  EXPECT_EQ(count(by, 0, 2), 1U);
  EXPECT_EQ(count(by, 39, 2), 1U);
  EXPECT_EQ(count(by, 40, 2), 2U);
  EXPECT_EQ(count(by, 60, 3), 2U);
  EXPECT_EQ(count(by, 1000, 2), 4U);
  EXPECT_EQ(count(by, 1000, 1), 1U) << "one rank exchanges nothing";
}

constexpr ExchangeCut kEachRow{.most = 4, .least_bytes = 1};

TEST(ExchangeCut, CutsRowsAsEquallyAsTheyCanBe) {
  const Ranges nobodys(4), wanted = {{0, 2}, {2, 5}, {5, 7}, {7, 10}};
  EXPECT_EQ(cut(kEachRow, {.rows = 10, .bytes = 1000, .ranks = 3}), (std::pair{wanted, nobodys}));
  EXPECT_EQ(cut(kEachRow, {.rows = 1, .bytes = 1000, .ranks = 3}),
            (std::pair{Ranges{{0, 1}}, Ranges{{0, 0}}}));
  EXPECT_EQ(cut(kEachRow, {.rows = 0, .bytes = 0, .ranks = 3}), (std::pair{Ranges{{0, 0}}, Ranges{{0, 0}}}));
}

// A piece of a sequence has whole parts of ranks, and a call for each of them.
TEST(ExchangeCut, CutsASequenceBetweenRanks) {
  const ExchangedRows whole{.rows = 12, .bytes = 1000, .ranks = 6, .sequence = true};
  EXPECT_EQ(cut(kEachRow, whole),
            (std::pair{Ranges{{0, 2}, {2, 6}, {6, 8}, {8, 12}}, Ranges{{0, 1}, {1, 3}, {3, 4}, {4, 6}}}));
  int calls = 0;
  for (const RowPiece& piece : kEachRow.pieces(whole)) calls += piece.calls();
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(ExchangeCut{}.pieces(whole).front().calls(), 1) << "all at once";
}

}  // namespace
}  // namespace megalith
