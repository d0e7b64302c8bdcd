#include "libcore/parallel/rank_communicators.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

ParallelConfig sizes(int tensor, int pipeline, int context, int data) {
  ParallelConfig parallel;
  parallel.tensor = tensor;
  parallel.pipeline = pipeline;
  parallel.context = context;
  parallel.data = data;
  parallel.world = tensor * pipeline * context * data;
  return parallel;
}

std::vector<int> groups(const ParallelConfig& parallel, int stage = 0) {
  return communicators_of(parallel, {.pipeline = stage}).groups;
}

// Those of all ranks and along each axis; of context ranks two. Data ranks are those with the same
// parameters. Along an axis of all ranks the first one serves, but not for context ranks.
TEST(RankCommunicators, AreThoseOfTheGroupsThatARankWorksIn) {
  EXPECT_EQ(groups(sizes(1, 1, 1, 1)), std::vector<int>{});
  EXPECT_EQ(groups(sizes(1, 1, 1, 4)), (std::vector<int>{4}));
  EXPECT_EQ(groups(sizes(4, 1, 1, 1)), (std::vector<int>{4}));
  EXPECT_EQ(groups(sizes(1, 1, 2, 3)), (std::vector<int>{6, 2, 2}));
  EXPECT_EQ(groups(sizes(1, 1, 2, 1)), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(groups(sizes(2, 1, 1, 3)), (std::vector<int>{6, 2, 3}));
  EXPECT_EQ(groups(sizes(1, 2, 1, 1)), (std::vector<int>{2}));
}

// The ends of a pipeline have a group for their table.
TEST(RankCommunicators, OfAPipelineAreItsLinks) {
  ParallelConfig line = sizes(1, 4, 1, 1);
  for (int stage = 0; stage < 4; ++stage) {
    const bool end = stage == 0 || stage == 3;
    const RankCommunicators of = communicators_of(line, {.pipeline = stage});
    EXPECT_EQ(of.groups, end ? (std::vector<int>{4, 2}) : std::vector<int>{4});
    EXPECT_EQ(of.sends, end ? 1 : 2) << stage;
    EXPECT_EQ(of.receives, end ? 1 : 2) << stage;
    EXPECT_EQ(of.count(), end ? 4U : 5U) << stage;
  }
  EXPECT_FALSE(closes_ring(line));
  ParallelConfig ring = line, listed = line;
  ring.layers_per_chunk = 1;
  listed.pipeline_layers = {"1", "1", "2", "1", "1", "1", "1", "2"};
  for (const ParallelConfig& interleaved : {ring, listed}) {
    EXPECT_TRUE(closes_ring(interleaved));
    EXPECT_EQ(communicators_of(interleaved, {}).count(), 6U);
  }
}

}  // namespace
}  // namespace megalith
