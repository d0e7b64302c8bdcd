#include "libcore/train/step/memory.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/train/run/loop.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;

RunShape shape(const PretrainConfig& config) {
  return {config.model, config.parallel, config.train};
}

TEST(RunMemory, CountsTheStateOfEachParameter) {
  const PretrainConfig config = tiny_config();
  const RunMemory estimate = run_memory(shape(config));
  // Counted by hand: token table 37 x 16, position table 9 x 16; in a layer two norms 2 x 16, qkv 48 x 16 +
  // 48, projection 16 x 16 + 16, fc1 64 x 16 + 64, fc2 16 x 64 + 16; the last norm 2 x 16.
  EXPECT_EQ(estimate.parameters, 37 * 16 + 9 * 16 + 2 * (64 + 816 + 272 + 1088 + 1040) + 32);
  EXPECT_GE(estimate.weights, static_cast<size_t>(estimate.parameters) * 4);
  EXPECT_EQ(estimate.grads, estimate.weights);
  EXPECT_EQ(estimate.optimizer, 2 * estimate.weights);
  EXPECT_EQ(estimate.executor.tapes, 1);
  EXPECT_EQ(estimate.links, 0U);
  EXPECT_EQ(estimate.total(), 4 * estimate.weights + estimate.activations() + estimate.scratch +
                                  estimate.batch + estimate.host + estimate.scalars);
}

TEST(RunMemory, OfA16BitModelHasMasters) {
  PretrainConfig config = tiny_config();
  config.train.bf16 = true;
  const RunMemory estimate = run_memory(shape(config));
  EXPECT_EQ(estimate.weights, (estimate.grads / 2 + 255) / 256 * 256);
  EXPECT_EQ(estimate.optimizer, 3 * estimate.grads);
}

TEST(RunMemory, CountsTheTypeOfTheFirstMoment) {
  PretrainConfig config = tiny_config();
  config.train.bf16 = true;
  const RunMemory wide = run_memory(shape(config));
  config.train.first_moments = MomentType::kBf16;
  const RunMemory narrow = run_memory(shape(config));
  EXPECT_EQ(narrow.optimizer, 2 * narrow.grads + narrow.weights);  // the weights are in bf16, too
  EXPECT_EQ(wide.total() - narrow.total(), wide.optimizer - narrow.optimizer);
}

TEST(RunMemory, OfAPipelineKeepsATapeForEachMicrobatchInFlight) {
  PretrainConfig config = tiny_config();
  config.model.layers = 4;
  config.parallel = {};
  config.parallel.pipeline = 4;
  config.parallel.finish();
  config.train.global_batch = 16;
  const auto estimate = [&](int rank) { return run_memory(shape(config), {.pipeline = rank}); };
  EXPECT_EQ(estimate(0).executor.tapes, 4);
  EXPECT_EQ(estimate(3).executor.tapes, 1);
  EXPECT_EQ(estimate(1).parameters, 64 + 816 + 272 + 1088 + 1040);  // one layer, neither embedding nor head
  // Inputs of 4 tapes, one gradient and 2 * 4 messages. Each is [9, 2, 16] fp32, 1152 bytes, which is rounded
  // up to 1280.
  EXPECT_EQ(estimate(0).links, 13U * 1280);
  EXPECT_EQ(estimate(3).links, (1 + 1 + 8) * 1280U);
}

// By Megatron's interleaving (Narayanan et al., SC 2021, section 2.2): a rank of 4 with 2 chunks begins
// 2 x (ranks after it) + 4 passes before its first backward pass, and one more beside it.
TEST(RunMemory, OfABillionMicrobatchesIsFoundWithoutTheirPlan) {
  PretrainConfig config = tiny_config();
  config.model.layers = 8;
  config.parallel = {};
  config.parallel.pipeline = 4;
  config.parallel.layers_per_chunk = 1;
  config.parallel.finish();
  config.train.global_batch = 2'000'000'000;
  const auto tapes = [&](int rank) { return run_memory(shape(config), {.pipeline = rank}).executor.tapes; };
  EXPECT_EQ(tapes(0), 2 * 3 + 4 + 1);
  EXPECT_EQ(tapes(3), 4 + 1);
}

// With ZeRO-1 a rank holds its share of the moments. With ZeRO-2 it also holds only its share of the
// gradients, plus the gradients of two layers and of the tied table.
TEST(RunMemory, OfShardedRanksIsTheirShare) {
  PretrainConfig config = tiny_config();
  config.model.layers = 16;
  const auto memory = [&](Sharding sharding) {
    config.parallel = {};
    config.parallel.data = 4;
    config.parallel.sharding = sharding;
    config.parallel.finish();
    config.train.global_batch = 8;
    return run_memory(shape(config));
  };
  const RunMemory whole = memory(Sharding::kNone), one = memory(Sharding::kOptimizer),
                  two = memory(Sharding::kGradients);
  // The tolerance is for padding: a bucket is padded to a multiple of 4 * 64 elements, a tensor to one of 256
  // bytes.
  EXPECT_NEAR(static_cast<double>(one.optimizer), static_cast<double>(whole.optimizer) / 4, 4096);
  EXPECT_NEAR(static_cast<double>(one.grads), static_cast<double>(whole.grads), 4096);
  const double layer = 4 * (64 + 816 + 272 + 1088 + 1040), table = 4 * 37 * 16;
  EXPECT_NEAR(static_cast<double>(two.grads), static_cast<double>(whole.grads) / 4 + 2 * layer + table,
              0.05 * static_cast<double>(whole.grads));
}

TEST(RunMemory, OfALongerBatchDiffersInTheBatchAlone) {
  PretrainConfig config = tiny_config();
  const RunMemory small = run_memory(shape(config));
  config.train.global_batch = 400;
  const RunMemory large = run_memory(shape(config));
  EXPECT_EQ(large.total() - large.batch - large.host, small.total() - small.batch - small.host);
  EXPECT_EQ(large.batch, 100 * small.batch);
}

// An adapter of rank 2 on the QKV of each layer: A [2, 16] and B [48, 2], each of which begins at a multiple
// of 64 elements.
TEST(RunMemory, OfAFrozenModelCountsTheAdaptersAlone) {
  const PretrainConfig config = tiny_config();
  RunShape run = shape(config);
  const RunMemory full = run_memory(run);
  run.tuning = {
      .frozen = true, .rank = 2, .targets = {{.layer = "self_attention.linear_qkv", .part = "c_attn"}}};
  const RunMemory estimate = run_memory(run);
  EXPECT_EQ(estimate.parameters, full.parameters + 2 * (2 * 16 + 48 * 2));
  EXPECT_EQ(estimate.grads, 2U * (64 + 128) * 4);
  EXPECT_EQ(estimate.optimizer, 2 * estimate.grads);
  // The frozen model keeps neither the 16 numbers of the second norm nor the 64 of the activation. That is
  // for 9 x 2 rows in two layers; each tensor begins at a multiple of 256 bytes.
  EXPECT_EQ(full.executor.tape - estimate.executor.tape, 2U * (1280 + 4608));
  EXPECT_LT(estimate.backward.flops, 0.7 * full.backward.flops);
  const Tuning tuning{.plan = run.tuning};
  EXPECT_EQ(train(config, test::tiny_data(), nullptr, StopSignal(), {}, &tuning).iteration,
            20);  // the run itself calls check_memory()
}

// The scratch memory is cuBLASLt's, or more where one op's rows need it: attention's gradient keeps four
// bytes for each row of each head.
TEST(RunMemory, OfAGpuCountsTheScratchOfItsKernels) {
  PretrainConfig config = tiny_config();
  const RunMemory cpu = run_memory(shape(config));
  EXPECT_EQ(cpu.workspace, 0U);
  config.train.device = "cuda";
  const RunMemory gpu = run_memory(shape(config));
  EXPECT_EQ(gpu.workspace, (size_t{32} << 20) + (size_t{256} << 10));
  EXPECT_EQ(gpu.staging, size_t{8} << 20);
  // A micro-batch has tokens, labels, mask and sample numbers, on a GPU also the gradient's scale: 256 bytes
  // each. Two are taken, on a GPU with one more that passes read; the host has one sample's first three
  // beside a micro-batch and beside a step, on a GPU beside each of two steps.
  EXPECT_EQ(cpu.batch, 2 * 4 * 256U);
  EXPECT_EQ(gpu.batch, 3 * 5 * 256U);
  EXPECT_EQ(cpu.host, (4 + 3) * 256U + (2 * 4 + 3) * 256U);
  EXPECT_EQ(gpu.host, (5 + 3) * 256U + 2 * (2 * 5 + 3) * 256U);
  EXPECT_EQ(gpu.total(), cpu.total() + gpu.workspace + gpu.graphs + gpu.staging + (gpu.batch - cpu.batch) +
                             (gpu.host - cpu.host));
  EXPECT_EQ(gpu.on_device() + gpu.host + gpu.staging, gpu.total());
  EXPECT_EQ(gpu.beside_device(), gpu.host + gpu.staging);
  config.model.hidden = 128;
  config.model.heads = 64;
  config.model.seq_length = config.model.max_positions = 4096;
  config.train.micro_batch = config.train.global_batch = 64;
  EXPECT_EQ(run_memory(shape(config)).workspace, size_t{4} * 64 * 64 * 4096);
}

// 2001 ids in 2048 rows of 16: weights in fp32, gradients and two moments. The logits of 9 x 2 rows are
// wider, too.
TEST(RunMemory, OfAGpuCountsThePaddingOfTheVocabulary) {
  RunShape run = shape(tiny_config());
  run.train.device = "cuda";
  run.model.vocab_size = 2001;
  const RunMemory plain = run_memory(run);
  run.vocabulary = gpu_vocabulary(0);
  const RunMemory padded = run_memory(run);
  EXPECT_EQ(padded.parameters - plain.parameters, (2048 - 2001) * 16);
  // Each parameter begins at a multiple of 64 elements, so 2001 rows take 32064.
  EXPECT_EQ(padded.weights - plain.weights, (2048U * 16 - 32064) * 4);
  EXPECT_EQ(padded.grads - plain.grads, padded.weights - plain.weights);
  EXPECT_EQ(padded.optimizer - plain.optimizer, 2 * (padded.weights - plain.weights));
  // Each tensor takes a multiple of 256 bytes: 147,456 for 18 x 2048 logits, 144,128 for 18 x 2001.
  EXPECT_EQ(padded.scratch - plain.scratch, 147'456U - 144'128);
}

// A save holds no padding, and so does its copy.
TEST(RunMemory, OfASavesCopyHasNoPadding) {
  RunShape run = shape(tiny_config());
  run.save_copy = SaveCopy::kAll;
  const size_t plain = run_memory(run).save_copy;
  run.vocabulary.padded = true;
  EXPECT_EQ(run_memory(run).save_copy, plain);
}

// An H200 has 143,771 MiB, as its driver says, an H100 81,559, and an A10 22,731.
TEST(GpuVocabulary, HasLogitsByTheDevicesMemory) {
  const auto logits = [](size_t mebibytes) {
    const VocabularyForm form = gpu_vocabulary(mebibytes << 20);
    EXPECT_TRUE(form.padded);
    return form.logits_bytes;
  };
  EXPECT_GE(logits(143'771), int64_t{1} << 30);
  EXPECT_EQ(logits(143'771), (int64_t{143'771} << 20) / 128);
  EXPECT_EQ(logits(81'559), (int64_t{81'559} << 20) / 128);
  EXPECT_EQ(logits(22'731), (int64_t{22'731} << 20) / 128);
  EXPECT_EQ(logits(8'192), int64_t{128} << 20);
  EXPECT_FALSE(RunShape{}.vocabulary.padded);
  EXPECT_EQ(RunShape{}.vocabulary.logits_bytes, int64_t{128} << 20);
}

}  // namespace
}  // namespace megalith
