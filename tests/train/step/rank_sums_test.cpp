// What sums in rank order over NCCL add to the estimate of a run's memory.
#include <gtest/gtest.h>

#include "libcore/train/step/memory.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// A GPT of one layer of 1024 columns in bf16, on GPUs, in micro-batches of 16 sequences of 1024: hidden
/// states of 32 MiB.
RunShape wide_run(int tensor, int data) {
  PretrainConfig config = test::tiny_config();
  config.model.layers = 1;
  config.model.hidden = 1024;
  config.model.heads = 8;
  config.model.ffn_hidden = config.model.kv_channels = 0;  // by the width
  config.model.seq_length = config.model.max_positions = 1024;
  config.train.micro_batch = 16;
  config.train.global_batch = 16 * data;
  config.train.bf16 = true;
  config.train.device = "cuda";
  config.parallel = {};
  config.parallel.tensor = tensor;
  config.parallel.data = data;
  config.parallel.world = tensor * data;
  config.finish();
  return run_shape(config);
}

/// What sums in rank order add to a rank's scratch memory.
size_t added(RunShape run) {
  run.parallel.rank_order = false;
  const size_t before = run_memory(run).workspace;
  run.parallel.rank_order = true;
  return run_memory(run).workspace - before;
}

/// What a stream has at least, as the compute stream has it for its products and the sums of their biases.
constexpr size_t kStream = 32 * kMiB + (size_t{256} << 10);

// By hand: the hidden states have 32 MiB. Two ranks exchange them in four pieces of 8 MiB on another stream,
// with sequence parallelism each rank's rows of both ranks: 32 MiB in all.
TEST(RankSums, NeedAStreamsScratchForExchangesInPieces) {
  RunShape run = wide_run(2, 1);
  EXPECT_EQ(added(run), kStream);
  run.parallel.sequence = true;
  EXPECT_EQ(added(run), kStream);
  run.gpu_cut = {};
  EXPECT_EQ(added(run), 0);
  run.train.micro_batch = 64;
  run.train.global_batch = 64;
  EXPECT_EQ(added(run), 128 * kMiB - kStream) << "hidden states of 128 MiB on the compute stream";
}

// By hand: of 1023 rows the largest of four pieces has 256, each of 128 sequences of 1024 columns of 2 bytes.
TEST(RankSums, NeedScratchForTheLargestPiece) {
  RunShape run = wide_run(2, 1);
  run.model.seq_length = run.model.max_positions = 1023;
  run.train.micro_batch = run.train.global_batch = 128;
  RunShape whole = run;
  whole.gpu_cut = {};
  EXPECT_EQ(added(run) - added(whole), 64 * kMiB);
  run.parallel.rank_order = true;
  const RunMemory memory = run_memory(run);
  EXPECT_EQ(memory.streams.pieces, 64 * kMiB);
  EXPECT_EQ(memory.streams.buckets, 0U);
  EXPECT_EQ(memory.streams.compute, memory.workspace - 64 * kMiB);
}

// By hand: one bucket of all parameters in fp32 but the tied table, which is smaller.
TEST(RankSums, NeedTheLargestBucket) {
  const RunShape run = wide_run(1, 2);
  const double block = 12.0 * 1024 * 1024 + 13 * 1024, rest = 1024.0 * 1024 + 2 * 1024;
  EXPECT_NEAR(static_cast<double>(added(run)), 4 * (block + rest), 1e5);
}

// Parts of equally many elements, so three ranks gather up to two elements more than a bucket has.
TEST(RankSums, NeedEqualPartsOfABucket) {
  const size_t bucket = added(wide_run(1, 2)), gathered = added(wide_run(1, 3));
  EXPECT_EQ(gathered % (3 * sizeof(float)), 0U);
  EXPECT_GE(gathered, bucket);
  EXPECT_LT(gathered, bucket + 3 * sizeof(float));
}

TEST(RankSums, NeedNothingWhereNcclDoesNotAdd) {
  RunShape run = wide_run(2, 1);
  run.nccl.channels = 0;  // threads that share a GPU
  EXPECT_EQ(added(run), 0);
  run.nccl = {};
  run.train.device = "cpu";
  EXPECT_EQ(added(run), 0);
}

}  // namespace
}  // namespace megalith
