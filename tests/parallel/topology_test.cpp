#include "libcore/parallel/topology.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

Topology make(int tensor, int context, int pipeline, int world) {
  ParallelConfig sizes;
  sizes.tensor = tensor;
  sizes.context = context;
  sizes.pipeline = pipeline;
  return Topology(sizes, world);
}

// The groups that Megatron's documentation of initialize_model_parallel lists for 16 GPUs with tensor size 2
// and pipeline size 4.
TEST(Topology, GroupsAreThoseOfMegatronsExample) {
  const Topology t = make(2, 1, 4, 16);
  EXPECT_EQ(t.group(0, {Axis::kData}), (std::vector<int>{0, 2}));
  EXPECT_EQ(t.group(13, {Axis::kData}), (std::vector<int>{13, 15}));
  EXPECT_EQ(t.group(10, {Axis::kTensor}), (std::vector<int>{10, 11}));
  EXPECT_EQ(t.group(5, {Axis::kPipeline}), (std::vector<int>{1, 5, 9, 13}));
  EXPECT_EQ(t.group(0, {Axis::kTensor, Axis::kPipeline}), (std::vector<int>{0, 1, 4, 5, 8, 9, 12, 13}));
}

TEST(Topology, CoordAndRankAreInverse) {
  const Topology t = make(2, 3, 2, 48);
  for (int rank = 0; rank < 48; ++rank) EXPECT_EQ(t.rank(t.coord(rank)), rank);
  EXPECT_EQ(t.size(Axis::kData), 4);
}

TEST(Topology, RefusesAWorldThatDoesNotFit) {
  EXPECT_THROW(make(4, 1, 2, 12), Error);
}

}  // namespace
}  // namespace megalith
