#include "libcore/train/step/memory_limits.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;

constexpr size_t kPageLocked = size_t{8} << 20;  // through which copies to a GPU pass

RunShape shape(const PretrainConfig& config) {
  return {config.model, config.parallel, config.train};
}

/// The message of the kUsage that `call` throws; empty if it throws none.
template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

// The message names the rank, its memory and the limit.
TEST(DeviceMemory, IsALimit) {
  PretrainConfig config = tiny_config();
  config.model.layers = 2;
  config.parallel = {};
  config.parallel.pipeline = 2;
  config.parallel.finish();
  const std::vector<ModelRank> ranks = memory_of_model(shape(config));
  size_t max = 0;
  for (const ModelRank& rank : ranks) max = std::max(max, rank.memory.total());
  const auto of_limit = [&](double limit) {
    config.train.device_memory = limit;
    return complaint([&] { require_device_memory(shape(config), memory_of_model(shape(config)), {}); });
  };
  EXPECT_EQ(of_limit(0), "");
  EXPECT_EQ(of_limit(static_cast<double>(max)), "");
  EXPECT_NE(of_limit(static_cast<double>(max) - 1).find("--device-memory-gb"), std::string::npos);
  // Memory of the host does not count towards the memory of a separate device.
  config.train.device = "cuda";
  const RunMemory gpu = run_memory(shape(config));
  const auto on_device = static_cast<double>(gpu.total() - gpu.host - kPageLocked);
  EXPECT_EQ(of_limit(on_device), "");
  EXPECT_NE(of_limit(on_device - 1).find("(tensor, pipeline) rank (0, 0) needs"), std::string::npos);
}

// The choice comes with the memory of a run with that choice. On a GPU only the copy itself, the samples
// and page-locked memory are in the machine's memory.
TEST(SaveCopy, IsLeftOutWhereItsMemoryIsMissing) {
  PretrainConfig config = tiny_config();
  config.checkpoint.save = "checkpoints";
  for (const char* device : {"cpu", "cuda"}) {
    config.train.device = device;
    config.checkpoint.async_save.reset();
    const RunMemory without = run_memory(shape(config));
    const auto choice = [&](std::optional<size_t> available) {
      return chosen_save_copy(config.checkpoint, shape(config), {available, 1});
    };
    const SaveCopyChoice wanted = choice(std::nullopt);
    EXPECT_EQ(wanted.copy, SaveCopy::kAll);
    ASSERT_EQ(wanted.ranks.size(), 1U);
    // The copy holds the value and both moments of each element.
    const size_t copy = wanted.ranks[0].memory.save_copy;
    EXPECT_GE(copy, 3 * 4 * static_cast<size_t>(wanted.ranks[0].memory.parameters));
    const size_t all = copy + (device == std::string("cpu") ? without.total() : without.host + kPageLocked);
    EXPECT_EQ(choice(all).copy, SaveCopy::kAll);
    const SaveCopyChoice left_out = choice(all - 1);
    EXPECT_EQ(left_out.copy, SaveCopy::kNone);
    EXPECT_EQ(left_out.ranks[0].memory.save_copy, 0U);
    EXPECT_EQ(left_out.ranks[0].memory.total(), without.total());
    config.checkpoint.async_save = true;
    EXPECT_EQ(choice(1).copy, SaveCopy::kAll) << "as was asked for";
  }
}

// A copy that was asked for is refused where the machine of a GPU cannot hold it.
TEST(SaveCopy, OfAGpuMustFitTheMachine) {
  PretrainConfig config = tiny_config();
  config.train.device = "cuda";
  RunShape run = shape(config);
  run.save_copy = SaveCopy::kAll;
  const std::vector<ModelRank> ranks = memory_of_model(run);
  const size_t needed = ranks[0].memory.host + kPageLocked + ranks[0].memory.save_copy;
  require_memory(run, ranks, {.machine = needed});
  const std::string message = complaint([&] { require_memory(run, ranks, {.machine = needed - 1}); });
  EXPECT_NE(message.find("beside that of the GPU"), std::string::npos) << message;
  EXPECT_NE(message.find("; the least change that fits: --no-async-save"), std::string::npos) << message;
}

/// A run of 8 layers and a micro-batch of 4, whose activations take most of its memory.
RunShape large_run() {
  PretrainConfig config = tiny_config();
  config.model.layers = 8;
  config.train.micro_batch = config.train.global_batch = 4;
  return shape(config);
}

size_t bytes(const RunShape& run) {
  return run_memory(run).total();
}

/// least_change() of a run that may use this much memory.
std::string change_to(const RunShape& run, size_t limit) {
  return least_change(run, [&](const RunShape& other) { return bytes(other) <= limit; });
}

RunShape with_micro_batch(RunShape run, int micro_batch) {
  run.train.micro_batch = micro_batch;
  return run;
}

RunShape with_layers(RunShape run, int layers) {
  run.train.recompute = Recompute::kFull;
  run.train.recompute_method = "block";
  run.train.recompute_layers = layers;
  return run;
}

TEST(LeastChange, IsASmallerMicroBatchOfTheSameStep) {
  const RunShape run = large_run(), two = with_micro_batch(run, 2), one = with_micro_batch(run, 1);
  ASSERT_LT(bytes(two), bytes(run));
  EXPECT_EQ(change_to(run, bytes(run) - 1), "--micro-batch-size 2 --global-batch-size 4");
  EXPECT_EQ(change_to(run, bytes(two)), "--micro-batch-size 2 --global-batch-size 4");
  EXPECT_EQ(change_to(run, bytes(two) - 1), "--micro-batch-size 1 --global-batch-size 4");
  EXPECT_EQ(change_to(run, bytes(one)), "--micro-batch-size 1 --global-batch-size 4");
  RunShape accumulated = run;
  accumulated.train.accumulation = 1;
  EXPECT_EQ(change_to(accumulated, bytes(two)), "--micro-batch-size 2 --gradient-accumulation-steps 2");
}

TEST(LeastChange, IsThenTheFewestLayersThatAreRecomputed) {
  RunShape run = with_micro_batch(large_run(), 1);
  run.train.recompute = Recompute::kSelective;
  for (const int layers : {2, 5, 8}) {
    const RunShape fewest = with_layers(run, layers);
    ASSERT_LT(bytes(fewest), bytes(with_layers(run, layers - 1)));
    EXPECT_EQ(change_to(run, bytes(fewest)),
              "--recompute-granularity full --recompute-method block --recompute-num-layers " +
                  std::to_string(layers));
  }
  EXPECT_EQ(change_to(run, bytes(with_layers(run, 8)) - 1), "");
}

TEST(LeastChange, DividesTheOptimizerWhereNothingElseFits) {
  RunShape run = with_layers(with_micro_batch(large_run(), 1), 8);
  run.parallel.data = 2;
  run.parallel.finish();
  RunShape one = run, two = run;
  one.parallel.sharding = Sharding::kOptimizer;
  two.parallel.sharding = Sharding::kGradients;
  ASSERT_LT(bytes(one), bytes(run));
  ASSERT_LT(bytes(two), bytes(one));
  EXPECT_EQ(change_to(run, bytes(one)), "--use-distributed-optimizer");
  EXPECT_EQ(change_to(run, bytes(one) - 1), "--sharding stage2");
  EXPECT_EQ(change_to(run, bytes(two) - 1), "");
}

// The message names what fits on the GPU, from the estimate with its change.
TEST(LeastChange, EndsTheMessageOfARunThatIsTooLarge) {
  RunShape run = large_run();
  run.train.device = "cuda";
  const std::vector<ModelRank> ranks = memory_of_model(run);
  const auto with_left = [&](size_t left) {
    return complaint([&] { require_memory(run, ranks, {.machine = {}, .devices = {left}}); });
  };
  EXPECT_EQ(with_left(ranks[0].memory.on_device()), "");
  const RunMemory& memory = ranks[0].memory;
  const std::string message = with_left(memory.on_device() - 1);
  EXPECT_TRUE(message.ends_with("left; the least change that fits: --cuda-graph-impl none")) << message;
  // A smaller micro-batch has two graphs, which are larger than what it saves.
  const std::string smaller = with_left(memory.on_device() - memory.graphs - 1);
  EXPECT_TRUE(smaller.ends_with("fits: --cuda-graph-impl none --micro-batch-size 2 --global-batch-size 4"))
      << smaller;
  const std::string fixed =
      format_bytes(static_cast<double>(memory.weights + memory.grads + memory.optimizer));
  EXPECT_TRUE(with_left(1).ends_with(
      concat("left; no smaller --micro-batch-size or recomputation makes the run fit: weights, gradients "
             "and optimizer alone take ",
             fixed, "; take a smaller model")))
      << with_left(1);
}

/// The run needs so many bytes of the device of its first rank, and of its last.
struct RanksOnGpus {
  RunShape run;
  std::vector<ModelRank> ranks;
  size_t first, last;

  RanksOnGpus(int tensor, int pipeline, int data) : run(shape(tiny_config())) {
    run.model.layers = 4;
    run.train.device = "cuda";
    run.train.global_batch = 4;
    run.parallel = {};
    run.parallel.tensor = tensor;
    run.parallel.pipeline = pipeline;
    run.parallel.data = data;
    run.parallel.nproc = tensor * pipeline * data;
    run.parallel.finish();
    ranks = memory_of_model(run);
    first = ranks.front().memory.on_device();
    last = ranks.back().memory.on_device();
  }
  std::string complaint_with(const std::vector<size_t>& left) const {
    return complaint([&] { require_memory(run, ranks, {.machine = {}, .devices = left}); });
  }
};

// The first stage needs more. The device of the last one may have less left.
TEST(DeviceMemory, OfEachRankIsThatOfItsOwnDevice) {
  const RanksOnGpus two(1, 2, 1);
  ASSERT_GT(two.first, two.last);
  EXPECT_EQ(two.complaint_with({two.first, two.last}), "");
  EXPECT_NE(two.complaint_with({two.last, two.first}), "");
  const auto text = [](size_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  const size_t little = two.last / 2;
  const std::string message = two.complaint_with({two.first, little});
  EXPECT_TRUE(
      message.starts_with(concat("rank 1 needs ", text(two.last), " of device memory (",
                                 two.ranks[1].memory.text(), "), its device has ", text(little), " left; ")))
      << message;
}

// Ranks are in the order tensor, data, pipeline.
TEST(DeviceMemory, OfTheRankThatLacksMostIsNamed) {
  const RanksOnGpus eight(2, 2, 2);
  ASSERT_EQ(eight.ranks.size(), 4U);
  std::vector<size_t> left(8, eight.first);
  EXPECT_EQ(eight.complaint_with(left), "");
  left[3] = eight.first - 100;
  left[6] = eight.last - 200;
  left[7] = eight.last - 199;
  EXPECT_TRUE(eight.complaint_with(left).starts_with("rank 6 needs ")) << eight.complaint_with(left);
}

// In a dry run only one device is known.
TEST(DeviceMemory, OfOneKnownDeviceCountsForAllRanks) {
  const RanksOnGpus two(1, 2, 1);
  EXPECT_EQ(two.complaint_with({two.first}), "");
  EXPECT_TRUE(two.complaint_with({two.first - 1}).starts_with("rank 0 needs "));
}

// More ranks would have less memory each.
TEST(DeviceMemory, OfASharedDeviceNeedsFewerRanks) {
  const RanksOnGpus two(1, 1, 2);
  const auto ends_with = [&](int sharers, const std::string& end) {
    const std::string message = complaint(
        [&] { require_memory(two.run, two.ranks, {.machine = {}, .devices = {1}, .sharers = sharers}); });
    EXPECT_TRUE(message.ends_with(end)) << message;
  };
  ends_with(1, "; take a smaller model, or more ranks");
  ends_with(2, "; take a smaller model, or fewer ranks on the device");
}

}  // namespace
}  // namespace megalith
