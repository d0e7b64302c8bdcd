#include "libcore/parallel/thread_comm.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/parallel/tensors.h"

namespace megalith {
namespace {

// ---- collectives
// --------------------------------------------------------------------------------------------

class ThreadComm : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadComm, testing::Values(1, 2, 3, 4, 8),
                         [](const auto& instance) { return std::to_string(instance.param); });

TEST_P(ThreadComm, AllReduceGivesEveryRankTheSumInRankOrder) {
  for (const DType dtype : kReduced)
    for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
      for (const int64_t elements : {0, 1, 2, 63, 64, 65, 1000, 4097}) {
        std::vector<Tensor> inputs = tensors_of(dtype, GetParam(), elements), results = inputs;
        const Tensor wanted = reduced(inputs, dtype, reduce);
        run_thread_ranks(GetParam(), {}, [&](Communicator& world) {
          Rank rank;
          Tensor& mine = results[static_cast<size_t>(world.rank())];
          world.all_reduce(rank.compute, mine.view(), reduce);
        });
        for (const Tensor& result : results)
          EXPECT_EQ(result, wanted) << name_of(dtype) << " " << elements << " elements";
      }
}
}  // namespace
}  // namespace megalith
