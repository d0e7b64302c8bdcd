#include "libcore/parallel/region.h"

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
  Stream stream{*backend};
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
    EXPECT_EQ(region.enter_grad(rank.stream, rank.arena, x).data, x.data);
    EXPECT_EQ(region.leave(rank.stream, rank.arena, x).data, x.data);
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
    EXPECT_EQ(values(region.leave(rank.stream, rank.arena, x)), (std::vector<float>{3, 6, 9, 12}));
    const View d = rank.tensor({k, 2 * k, 3 * k, 4 * k}, {4, 1, 1});
    EXPECT_EQ(values(region.enter_grad(rank.stream, rank.arena, d)), (std::vector<float>{3, 6, 9, 12}));
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
    EXPECT_EQ(values(region.leave(rank.stream, rank.arena, partial)), sums[comm.rank()]);
    EXPECT_EQ(values(region.enter_grad(rank.stream, rank.arena, partial)), sums[comm.rank()]);
    EXPECT_EQ(region.rows_outside(4), 2);
    EXPECT_EQ(region.first_row(4), 2 * comm.rank());
    EXPECT_THROW(region.rows_outside(5), Error);
  });
}

}  // namespace
}  // namespace megalith
