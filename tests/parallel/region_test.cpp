#include "libcore/parallel/region.h"

#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

/// A rank's own backend, stream and arena.
struct Rank {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream{*backend}, beside = backend->make_queue_stream();
  Arena arena{"test", backend->allocate(4096)};

  View tensor(const std::vector<float>& values, Shape shape) {
    const View view = arena.make(DType::kF32, shape, "tensor");
    stream.from_host(view, values.data());
    return view;
  }
};

std::vector<float> values(ConstView view) {
  return {view.as<float>(), view.as<float>() + view.elements()};
}

TEST(Region, OfOneRankReturnsItsArgument) {
  const std::unique_ptr<Communicator> alone = make_self_comm();
  for (const bool sequence : {false, true}) {
    const Region region(*alone, sequence);
    Rank rank;
    const View x = rank.tensor({1, 2, 3, 4}, {4, 1, 1});
    EXPECT_EQ(region.enter(rank.stream, rank.arena, x).data, x.data);
    EXPECT_EQ(region.enter_grad(rank.stream, x).data, x.data);
    EXPECT_EQ(region.leave(rank.stream, x).data, x.data);
    EXPECT_EQ(region.leave_grad(rank.stream, rank.arena, x).data, x.data);
    EXPECT_EQ(values(x), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(region.rows_outside(5), 5);
    EXPECT_FALSE(region.sequence());
  }
}

// Rank r holds {1, 2, 3, 4} * (r + 1).
TEST(Region, SumsOnTheWayOutAndForTheGradientOfTheWayIn) {
  run_thread_ranks(2, {}, [](Communicator& comm) {
    const Region region(comm);
    Rank rank;
    const auto k = static_cast<float>(comm.rank() + 1);
    const View x = rank.tensor({k, 2 * k, 3 * k, 4 * k}, {4, 1, 1});
    EXPECT_EQ(region.enter(rank.stream, rank.arena, x).data, x.data);
    EXPECT_EQ(region.leave_grad(rank.stream, rank.arena, x).data, x.data);
    EXPECT_EQ(values(region.leave(rank.stream, x)), (std::vector<float>{3, 6, 9, 12}));
    const View d = rank.tensor({k, 2 * k, 3 * k, 4 * k}, {4, 1, 1});
    EXPECT_EQ(values(region.enter_grad(rank.stream, d)), (std::vector<float>{3, 6, 9, 12}));
    EXPECT_EQ(region.first_row(4), 0);
  });
}

TEST(Region, GathersAndScattersTheSequence) {
  run_thread_ranks(2, {}, [](Communicator& comm) {
    const Region region(comm, true);
    Rank rank;
    const auto k = static_cast<float>(comm.rank() + 1);
    const View mine = rank.tensor({k, 2 * k}, {2, 1, 1});
    const std::vector<float> all{1, 2, 2, 4};
    const ConstView inside = region.enter(rank.stream, rank.arena, mine);
    EXPECT_EQ(inside.shape, (Shape{4, 1, 1}));
    EXPECT_EQ(values(inside), all);
    EXPECT_EQ(values(region.leave_grad(rank.stream, rank.arena, mine)), all);

    const View partial = rank.tensor({k, 2 * k, 3 * k, 4 * k}, {4, 1, 1});
    const std::vector<float> sums[] = {{3, 6}, {9, 12}};
    EXPECT_EQ(values(region.leave(rank.stream, partial)), sums[comm.rank()]);
    const View again = rank.tensor({k, 2 * k, 3 * k, 4 * k}, {4, 1, 1});
    EXPECT_EQ(values(region.enter_grad(rank.stream, again)), sums[comm.rank()]);
    EXPECT_EQ(region.rows_outside(4), 2);
    EXPECT_EQ(region.first_row(4), 2 * comm.rank());
    EXPECT_THROW(region.rows_outside(5), Error);
  });
}

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

constexpr ExchangeCut kEachRow{.most = 4, .least_bytes = 1};

/// A tensor of `rows` rows of 3, whose element i on rank r is (r + 1) * (i + 1), and the sums over the ranks.
std::vector<float> partial_of(int rank, int64_t rows) {
  std::vector<float> all;
  for (int i = 1; i <= 3 * rows; ++i) all.push_back(static_cast<float>((rank + 1) * i));
  return all;
}
std::vector<float> sums_of(int ranks, int64_t rows) {
  std::vector<float> all;
  const int factors = ranks * (ranks + 1) / 2;  // 1 to `ranks`, of each rank
  for (int i = 1; i <= 3 * rows; ++i) all.push_back(static_cast<float>(factors * i));
  return all;
}

// The rows are computed piece by piece, and none is summed before it is there: until then it has no sum.
TEST(Region, SumsThePiecesOfAProduct) {
  constexpr int kRanks = 3;
  run_thread_ranks(kRanks, {}, [](Communicator& comm) {
    Rank rank;
    const Region region(comm, false, kEachRow, rank.beside);
    for (const int64_t rows : {1, 3, 10}) {
      const View from = rank.tensor(partial_of(comm.rank(), rows), {rows, 3, 1}),
                 to = rank.tensor(std::vector<float>(static_cast<size_t>(3 * rows), NAN), {rows, 3, 1});
      Ranges seen;
      const View out = region.leave(rank.stream, to, [&](int64_t begin, int64_t end) {
        seen.emplace_back(begin, end);
        rank.stream.copy(to.rows(begin, end), from.rows(begin, end));
      });
      EXPECT_EQ(values(out), sums_of(kRanks, rows)) << rows;
      const Ranges wanted = rows == 1   ? Ranges{{0, 1}}
                            : rows == 3 ? Ranges{{0, 1}, {1, 2}, {2, 3}}
                                        : Ranges{{0, 2}, {2, 5}, {5, 7}, {7, 10}};
      EXPECT_EQ(seen, wanted) << rows;
    }
  });
}

// What is computed need not end where a piece does: a piece is summed when its last row is there. Another
// call of the group may come between two pieces.
TEST(Region, SumsThePiecesThatAreComplete) {
  constexpr int kRanks = 2;
  run_thread_ranks(kRanks, {}, [](Communicator& comm) {
    Rank rank;
    const Region region(comm, false, kEachRow, rank.beside);
    constexpr int64_t kRows = 8;  // in pieces of 2
    const std::vector<float> mine = partial_of(comm.rank(), kRows), sums = sums_of(kRanks, kRows);
    const View partial = rank.tensor(mine, {kRows, 3, 1});
    Region::Exit exit(region, partial);
    EXPECT_EQ(exit.pieces().size(), 4U);
    const auto expect_sums_of = [&](size_t rows) {
      region.join(rank.stream, partial);
      std::vector<float> wanted = mine;
      std::copy(sums.begin(), sums.begin() + static_cast<ptrdiff_t>(3 * rows), wanted.begin());
      EXPECT_EQ(values(partial), wanted) << rows;
    };
    exit.computed(rank.stream, 1);
    expect_sums_of(0);
    exit.computed(rank.stream, 5);
    expect_sums_of(4);
    const View other = rank.tensor({1}, {1});
    comm.all_reduce(rank.stream, other, Reduce::kSum);
    EXPECT_EQ(values(other), std::vector<float>{kRanks});
    const View out = exit.finish(rank.stream);
    EXPECT_EQ(values(out), sums);
  });
}

// With more ranks than pieces a piece has the rows of several ranks.
TEST(Region, SumsAndGathersThePiecesOfASequence) {
  for (const int ranks : {2, 6})
    run_thread_ranks(ranks, {}, [ranks](Communicator& comm) {
      Rank rank;
      const Region region(comm, true, kEachRow, rank.beside);
      const int64_t own = 2, rows = own * ranks;
      const Ranges wanted = ranks == 2 ? Ranges{{0, 2}, {2, 4}} : Ranges{{0, 2}, {2, 6}, {6, 8}, {8, 12}};
      const View from = rank.tensor(partial_of(comm.rank(), rows), {rows, 3, 1}),
                 to = rank.tensor(std::vector<float>(static_cast<size_t>(3 * rows), NAN), {rows, 3, 1});
      Ranges seen;
      const View out = region.enter_grad(rank.stream, to, [&](int64_t begin, int64_t end) {
        seen.emplace_back(begin, end);
        rank.stream.copy(to.rows(begin, end), from.rows(begin, end));
      });
      const std::vector<float> sums = sums_of(ranks, rows);
      const auto first = sums.begin() + comm.rank() * 3 * own;
      EXPECT_EQ(values(out), std::vector<float>(first, first + 3 * own));
      EXPECT_EQ(seen, wanted);

      seen.clear();
      const View copied = rank.tensor(std::vector<float>(sums.size(), NAN), {rows, 3, 1});
      region.enter(rank.stream, rank.arena, out, [&](ConstView whole, int64_t begin, int64_t end) {
        seen.emplace_back(begin, end);
        rank.stream.copy(copied.rows(begin, end), whole.rows(begin, end));
      });
      EXPECT_EQ(values(copied), sums);
      EXPECT_EQ(seen, wanted);

      const Region::Late late = region.enter_later(rank.stream, rank.arena, out);
      EXPECT_EQ(late.parts.size(), 1U);
      late.wait(rank.stream);
      EXPECT_EQ(values(late.rows), sums);

      seen.clear();
      const Region::Late gradient = region.leave_grad_by_piece(rank.stream, rank.arena, out),
                         beside = region.enter_later(rank.stream, rank.arena, out);
      gradient.each(rank.stream, [&](int64_t begin, int64_t end) { seen.emplace_back(begin, end); });
      EXPECT_EQ(values(gradient.rows), sums);
      EXPECT_EQ(seen, wanted);
      beside.wait(rank.stream);
      EXPECT_EQ(values(beside.rows), sums);
    });
}

}  // namespace
}  // namespace megalith
