#include "libcore/train/run/dry_run.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

std::string picture(int ranks, int microbatches, int chunks = 1) {
  ParallelConfig parallel;
  parallel.pipeline = ranks;
  ModelConfig model;
  model.layers = ranks * chunks;
  if (chunks > 1) parallel.layers_per_chunk = 1;
  return schedule_picture(parallel, model, microbatches);
}

// The expected pictures were drawn by hand: a forward pass takes 1 column, a backward pass 2, and each waits
// for its neighbour.
TEST(DryRun, DrawsOneForwardOneBackward) {
  EXPECT_EQ(picture(1, 2), "  pipeline rank 0 | 00-11-\n");
  EXPECT_EQ(picture(2, 3),
            "  pipeline rank 0 | 01..0-21-.2-\n"
            "  pipeline rank 1 | .00-11-22-\n");
}

TEST(DryRun, DrawsAnInterleavedPipelineOfAllPieces) {
  const std::string text = picture(2, 2, 2);
  size_t forwards = 0, backwards = 0;
  for (size_t i = 1; i < text.size(); ++i)
    if (text[i] == 'a' || text[i] == 'b') ++(text[i - 1] == '-' ? backwards : forwards);
  EXPECT_EQ(backwards, 8u) << text;     // 2 ranks * 2 chunks * 2 microbatches
  EXPECT_EQ(forwards - 2, 8u) << text;  // minus the letter "a" in "rank", once per line
}

}  // namespace
}  // namespace megalith
