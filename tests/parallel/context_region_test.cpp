#include "libcore/parallel/context_region.h"

#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

std::vector<int64_t> positions(const RowPositions& rows, int64_t count) {
  std::vector<int64_t> all;
  for (int64_t row = 0; row < count; ++row) all.push_back(rows.at(row));
  return all;
}

// Expected positions, by hand: as in Megatron's get_batch_on_this_cp_rank, rank r has chunks r and 2 * size -
// 1 - r.
TEST(ContextRows, AreTwoChunksOfTheSequence) {
  EXPECT_EQ(positions(context_rows(0, 1, 3), 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(positions(context_rows(0, 3, 4), 4), (std::vector<int64_t>{0, 1, 10, 11}));
  EXPECT_EQ(positions(context_rows(1, 3, 4), 4), (std::vector<int64_t>{2, 3, 8, 9}));
  EXPECT_EQ(positions(context_rows(2, 3, 4), 4), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_THROW(context_rows(0, 2, 3), Error);
}

// A sequence-parallel rank has only some of its context rank's rows, and these may lie in both chunks.
TEST(ContextRows, CanBeSplitAgain) {
  const RowPositions rows = context_rows(0, 2, 6);
  EXPECT_EQ(positions(rows, 6), (std::vector<int64_t>{0, 1, 2, 9, 10, 11}));
  EXPECT_EQ(positions(rows.from(2), 4), (std::vector<int64_t>{2, 9, 10, 11}));
  EXPECT_EQ(positions(rows.from(4), 2), (std::vector<int64_t>{10, 11}));
  EXPECT_EQ(positions(rows.from(4).from(1), 1), (std::vector<int64_t>{11}));
}

using Span = std::vector<int64_t>;
std::vector<Span> spans(const RowPositions& rows, int64_t count) {
  std::vector<Span> all;
  rows.each_span(count, [&](int64_t begin, int64_t end, int64_t position) {
    all.push_back({begin, end, position});
  });
  return all;
}

TEST(ContextRows, AreVisitedSpanBySpan) {
  const RowPositions rows = context_rows(0, 2, 6);
  EXPECT_EQ(spans(rows, 6), (std::vector<Span>{{0, 3, 0}, {3, 6, 9}}));
  EXPECT_EQ(spans(rows.from(1), 5), (std::vector<Span>{{0, 2, 1}, {2, 5, 9}}));
  EXPECT_EQ(spans(rows.from(4), 2), (std::vector<Span>{{0, 2, 10}}));
  EXPECT_EQ(spans(rows, 2), (std::vector<Span>{{0, 2, 0}}));
  EXPECT_EQ(spans(context_rows(1, 2, 6), 6), (std::vector<Span>{{0, 6, 3}}));
  EXPECT_EQ(spans({}, 4), (std::vector<Span>{{0, 4, 0}}));
  EXPECT_TRUE(spans({}, 0).empty());
}

/// A rank's whole sequence of `rows` rows of two numbers.
struct Sequence {
  explicit Sequence(int64_t rows) : whole(arena.make(DType::kF32, {rows, 2}, "whole")) {}
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream{*backend};
  Arena arena{"test", backend->allocate(4096)};
  View whole;
  float* row(int64_t at) const { return whole.as<float>() + 2 * at; }
};

template <class Work>
void on_context_ranks(int ranks, const Work& work) {
  run_thread_ranks(ranks, {}, [&](Communicator& world) {
    const auto ascending = world.split("context", 0, world.rank());
    const auto descending = world.split("context reversed", 0, -world.rank());
    work(ContextRegion(*ascending, *descending));
  });
}

TEST(ContextRegion, GathersEachRowAtItsPosition) {
  for (const int ranks : {2, 3, 4})
    on_context_ranks(ranks, [&](const ContextRegion& region) {
      Sequence s(4 * ranks);
      s.stream.fill(s.whole, -1);
      const RowPositions rows = region.rows(4);
      for (int64_t row = 0; row < 4; ++row)
        for (int i = 0; i < 2; ++i) s.row(rows.at(row))[i] = static_cast<float>(100 * rows.at(row) + i);
      region.gather(s.stream, s.whole);
      for (int64_t at = 0; at < 4 * ranks; ++at)
        for (int i = 0; i < 2; ++i) EXPECT_EQ(s.row(at)[i], static_cast<float>(100 * at + i));
    });
}

// Rank r's `whole` holds (r + 1) * position in each row.
TEST(ContextRegion, AddsUpThisRanksRows) {
  on_context_ranks(3, [](const ContextRegion& region) {
    Sequence s(12);
    for (int64_t at = 0; at < 12; ++at)
      for (int i = 0; i < 2; ++i) s.row(at)[i] = static_cast<float>((region.rank() + 1) * at);
    region.sum(s.stream, s.whole);
    const RowPositions rows = region.rows(4);
    for (int64_t row = 0; row < 4; ++row)
      EXPECT_EQ(s.row(rows.at(row))[1], static_cast<float>(6 * rows.at(row)));
  });
}

TEST(ContextRegion, OfOneRankLeavesEverything) {
  Sequence s(3);
  s.stream.fill(s.whole, 7);
  const ContextRegion alone;
  alone.gather(s.stream, s.whole);
  alone.sum(s.stream, s.whole);
  EXPECT_EQ(s.row(2)[1], 7);
  EXPECT_EQ(positions(alone.rows(3), 3), (std::vector<int64_t>{0, 1, 2}));
}

TEST(ContextRegion, RefusesGroupsThatAreNotReversed) {
  run_thread_ranks(2, {}, [](Communicator& world) {
    const auto other = world.split("other", 0, world.rank());
    EXPECT_THROW(ContextRegion(world, *other), Error);
  });
}

}  // namespace
}  // namespace megalith
