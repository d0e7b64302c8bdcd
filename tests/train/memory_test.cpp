#include "libcore/train/memory.h"

#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;

RunShape shape(const PretrainConfig& config) {
  return {config.model, config.parallel, config.train};
}

TEST(RunMemory, CountsTheStateOfEachParameter) {
  const PretrainConfig config = tiny_config();
  const RunMemory bill = run_memory(shape(config));
  // By hand: token table 37 x 16, position table 9 x 16; a layer: two norms 2 x 16, qkv 48 x 16 + 48,
  // projection 16 x 16 + 16, fc1 64 x 16 + 64, fc2 16 x 64 + 16; the last norm 2 x 16.
  EXPECT_EQ(bill.parameters, 37 * 16 + 9 * 16 + 2 * (64 + 816 + 272 + 1088 + 1040) + 32);
  EXPECT_GE(bill.weights, static_cast<size_t>(bill.parameters) * 4);
  EXPECT_EQ(bill.grads, bill.weights);
  EXPECT_EQ(bill.optimizer, 2 * bill.weights);
  EXPECT_EQ(bill.executor.tapes, 1);
  EXPECT_EQ(bill.links, 0U);
  EXPECT_EQ(bill.total(), 4 * bill.weights + bill.activations() + bill.scratch + bill.batch);
}

TEST(RunMemory, OfA16BitModelHasMasters) {
  PretrainConfig config = tiny_config();
  config.train.bf16 = true;
  const RunMemory bill = run_memory(shape(config));
  EXPECT_EQ(bill.grads, 2 * bill.weights);
  EXPECT_EQ(bill.optimizer, 3 * bill.grads);
}

TEST(RunMemory, OfAPipelineKeepsATapeForEachMicrobatchInFlight) {
  PretrainConfig config = tiny_config();
  config.model.layers = 4;
  config.parallel = {};
  config.parallel.pipeline = 4;
  config.parallel.finish();
  config.train.global_batch = 16;
  const auto bill = [&](int rank) { return run_memory(shape(config), {.pipeline = rank}); };
  EXPECT_EQ(bill(0).executor.tapes, 4);
  EXPECT_EQ(bill(3).executor.tapes, 1);
  EXPECT_EQ(bill(1).parameters, 64 + 816 + 272 + 1088 + 1040);  // one layer, neither embedding nor head
  // 4 tapes' inputs and one gradient of [9, 2, 16] fp32 = 1152 bytes, each rounded to 256.
  EXPECT_EQ(bill(0).links, 5U * 1280);
}

TEST(RunMemory, OfALongerBatchDiffersInTheBatchAlone) {
  PretrainConfig config = tiny_config();
  const RunMemory small = run_memory(shape(config));
  config.train.global_batch = 400;
  const RunMemory large = run_memory(shape(config));
  EXPECT_EQ(large.total() - large.batch, small.total() - small.batch);
  EXPECT_EQ(large.batch, 100 * small.batch);
}

TEST(AvailableMemory, IsKnownHereAndPlausible) {
  const auto bytes = available_memory();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_GT(*bytes, size_t{1} << 20);
  EXPECT_LT(*bytes, size_t{1} << 50);
}

}  // namespace
}  // namespace megalith
