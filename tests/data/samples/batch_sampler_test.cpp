#include "libcore/data/samples/batch_sampler.h"

#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Expected values computed by hand: rounds of 2 * 3 samples from sample 5 on, of which rank 1 gets the third
// and fourth.
TEST(BatchSampler, DealsBlocksToRanksFromTheFirstUnconsumed) {
  BatchSampler sampler({.size = 20, .consumed = 5, .micro_batch = 2, .rank = 1, .ranks = 3});
  EXPECT_EQ(sampler.remaining(), 2);
  std::array<int64_t, 2> samples{};
  ASSERT_TRUE(sampler.next(samples));
  EXPECT_EQ(samples, (std::array<int64_t, 2>{7, 8}));
  ASSERT_TRUE(sampler.next(samples));
  EXPECT_EQ(samples, (std::array<int64_t, 2>{13, 14}));
  EXPECT_EQ(sampler.consumed(), 17);
  EXPECT_FALSE(sampler.next(samples));  // three samples are left, but a round takes six
  EXPECT_EQ(sampler.consumed(), 17);
}

TEST(BatchSampler, GivesEachSampleToOneRank) {
  for (const int ranks : {1, 2, 5}) {
    std::vector<int> times(103, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      BatchSampler sampler({.size = 103, .consumed = 0, .micro_batch = 4, .rank = rank, .ranks = ranks});
      for (std::array<int64_t, 4> samples{}; sampler.next(samples);)
        for (const int64_t i : samples) ++times[static_cast<size_t>(i)];
    }
    const int dealt = 103 / (4 * ranks) * 4 * ranks;
    for (int i = 0; i < 103; ++i) EXPECT_EQ(times[static_cast<size_t>(i)], i < dealt ? 1 : 0) << ranks;
  }
}

// Computed by hand from Megatron's get_train_valid_test_num_samples and training loop.
TEST(BatchSampler, AsksForMegatronsNumberOfSamples) {
  const RunLength run{.train_iters = 1000, .global_batch = 8, .eval_interval = 300, .eval_iters = 10};
  EXPECT_EQ(requested_samples(run), (std::array<int64_t, 3>{8000, 4 * 10 * 8, 80}));
  RunLength by_samples = run;
  by_samples.train_samples = 7999;
  EXPECT_EQ(requested_samples(by_samples)[0], 7999);
  RunLength endless = run;
  endless.train_iters = int64_t{1} << 61;  // times 8 it would be 0 in 64 bits
  EXPECT_EQ(requested_samples(endless), (std::array<int64_t, 3>{INT64_MAX, 614891469123651760, 80}));
  EXPECT_EQ(consumed_valid_samples(run, 0), 0);
  EXPECT_EQ(consumed_valid_samples(run, 299), 0);
  EXPECT_EQ(consumed_valid_samples(run, 600), 160);
}

}  // namespace
}  // namespace megalith
