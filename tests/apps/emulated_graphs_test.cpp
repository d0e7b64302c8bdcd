// Runs on the emulated device whose passes are replayed as graphs and whose results are read late, beside
// runs that launch each kernel.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/emulated_pretrain.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

class EmulatedGraphs : public EmulatedPretrain {
 protected:
  /// The log of a run, whose calls of the device are in `calls_` then.
  std::string log_of(const std::string& options, int order, int devices = 1) {
    const EmulatedDeviceForPrograms emulated(order, devices);
    const Variable counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
    const CommandResult result = train("--device cuda --log-interval 1 " + options);
    EXPECT_EQ(result.code, 0) << result.all();
    calls_ = Json::load(dir_ / "counts.json");
    return result.all();
  }
  int64_t launches() const { return calls_["graph_launches"].as_int(); }
  /// Losses, norms and rates of a --log-json file, as they are written.
  std::vector<std::string> figures(const std::string& name) const {
    std::vector<std::string> all;
    for (const char* type : {"train", "valid"})
      for (const Json& line : lines(name, type))
        for (const char* key : {"loss", "grad_norm", "lr", "loss_scale"})
          if (const Json* const value = line.find(key)) all.push_back(value->dump());
    return all;
  }
  static bool has(const std::string& log, const std::string& text) {
    return log.find(text) != std::string::npos;
  }

  Json calls_;
};

// train_test RepeatedPasses has each model in several orders of work.
TEST_F(EmulatedGraphs, HaveTheBitsOfLaunchedKernels) {
  int order = 0;
  for (const std::string& model : {kGpt2, kGpt2 + "--bf16 ", kLlama, kLlama + "--bf16 "}) {
    ++order;
    const std::string options = model + "--train-iters 6 --eval-interval 3 --eval-iters 1 --save-interval 2 ";
    const std::string launched =
        log_of(options + "--cuda-graph-impl none --save launched --log-json launched.jsonl", 1);
    EXPECT_TRUE(has(launched,
                    " > CUDA graphs: not used: --cuda-graph-impl none; the result of a step is read "
                    "after the next one has begun"))
        << launched;
    EXPECT_EQ(launches(), 0);
    const int64_t kernels = calls_["kernels"].as_int();
    const std::string replayed = log_of(options + "--save replayed --log-json replayed.jsonl", order);
    EXPECT_TRUE(has(replayed, " > CUDA graphs: passes of micro-batches are replayed; ")) << replayed;
    EXPECT_EQ(figures("replayed.jsonl"), figures("launched.jsonl")) << model << order;
    EXPECT_EQ(checkpoint_contents(dir_ / "replayed/iter_0000006"),
              checkpoint_contents(dir_ / "launched/iter_0000006"));
    EXPECT_EQ(launches(), 2 * 6 - 2);  // two kinds, each of which is launched once
    EXPECT_LT(calls_["kernels"].as_int(), kernels);
    for (const char* made : {"launched", "launched.jsonl", "replayed", "replayed.jsonl"})
      EXPECT_GT(std::filesystem::remove_all(dir_ / made), 0U);
  }
}

// The run is resumed twice, in other orders of work, once without graphs.
TEST_F(EmulatedGraphs, ResumeBitForBit) {
  const std::string options = kGpt2 + "--train-iters 9 --eval-iters 0 --save-interval 3 ";
  log_of(options + "--save whole --load whole --log-json whole.jsonl", 1);
  const std::string parts = options + "--save parts --load parts --log-json parts.jsonl ";
  log_of(parts + "--exit-interval 3", 2);
  log_of(parts + "--exit-interval 6 --cuda-graph-impl none", 3);
  log_of(parts, 1);
  EXPECT_EQ(figures("parts.jsonl"), figures("whole.jsonl"));
  EXPECT_EQ(checkpoint_contents(dir_ / "parts/iter_0000009"),
            checkpoint_contents(dir_ / "whole/iter_0000009"));
}

// Where the system locks no pages, samples and results are copied as other memory is, and graphs are
// replayed.
TEST_F(EmulatedGraphs, AreReplayedWherePagesAreNotLocked) {
  const std::string options = kGpt2 + "--train-iters 5 --eval-iters 0 --log-json ";
  log_of(options + "locked.jsonl", 1);
  const Variable refused("MEGALITH_EMULATOR_MEMORY_LOCK", "refused");
  const std::string log = log_of(options + "unlocked.jsonl", 2);
  EXPECT_TRUE(has(log, "replayed; the result of a step is read before the next one begins")) << log;
  EXPECT_EQ(figures("unlocked.jsonl"), figures("locked.jsonl"));
  EXPECT_GT(launches(), 0);
}

// A dynamic loss scale follows from a step's result. Graphs hold it as a number, and are captured again.
TEST_F(EmulatedGraphs, FollowADynamicLossScale) {
  const std::string options = kGpt2 + "--fp16 --train-iters 24 --eval-iters 0 --log-json ";
  log_of(options + "launched.jsonl --cuda-graph-impl none", 1);
  const std::string replayed = log_of(options + "replayed.jsonl", 2);
  EXPECT_TRUE(has(replayed, "the result of a step is read before the next one begins")) << replayed;
  EXPECT_EQ(figures("replayed.jsonl"), figures("launched.jsonl"));
  EXPECT_GT(launches(), 0);
}

// Two ranks, each with a device: the first passes of a step gather parameters and the last ones sum
// gradients, beside the passes.
TEST_F(EmulatedGraphs, LeaveGathersAndSumsBesidePassesToLaunches) {
  const std::string options =
      kGpt2 + "--nproc 2 --use-distributed-optimizer --global-batch-size 16 --train-iters 4 --eval-iters 0 ";
  log_of(options + "--log-json launched.jsonl --cuda-graph-impl none", 1, 2);
  const std::string replayed = log_of(options + "--log-json replayed.jsonl", 2, 2);
  EXPECT_TRUE(has(replayed, "and its first one, which gathers parameters")) << replayed;
  EXPECT_EQ(figures("replayed.jsonl"), figures("launched.jsonl"));
  EXPECT_EQ(launches(), 2 * (2 * 4 - 1));
  const std::string stages =
      log_of(kGpt2 + "--nproc 2 --pipeline-model-parallel-size 2 --train-iters 2", 1, 2);
  EXPECT_TRUE(has(stages, " > CUDA graphs: not used: passes of a pipeline's stages")) << stages;
}

// The exchanges of tensor- and context-parallel ranks are in the graphs. A step of a rank waits once, as one
// whose kernels are launched does.
TEST_F(EmulatedGraphs, HoldTheExchangesOfRanks) {
  struct Layout {
    std::string options;
    int kinds;  // of micro-batches that are replayed: context-parallel ranks sum gradients in the last one
    int order;  // of work on the devices; train_test RepeatedExchanges has each layout in several
  };
  const std::string tensor = "--nproc 2 --tensor-model-parallel-size 2 ";
  for (const Layout& layout : {Layout{kGpt2 + tensor, 2, 1},
                               {kLlama + tensor + "--sequence-parallel --bf16 ", 2, 2},
                               {kLlama + "--nproc 2 --context-parallel-size 2 ", 1, 3}}) {
    const std::string options =
        layout.options + "--global-batch-size 8 --train-iters 4 --eval-interval 4 --eval-iters 1 ";
    log_of(options + "--log-json launched.jsonl --cuda-graph-impl none", 1, 2);
    const int64_t kernels = calls_["kernels"].as_int(), waits = calls_["waits"].as_int();
    const std::string replayed = log_of(options + "--log-json replayed.jsonl", layout.order, 2);
    EXPECT_TRUE(has(replayed, " > CUDA graphs: passes of micro-batches are replayed, with their exchanges"))
        << replayed;
    EXPECT_EQ(figures("replayed.jsonl"), figures("launched.jsonl")) << layout.options;
    // By hand, of 4 micro-batches in each of 4 steps: 3, whose first one is launched, and the last ones, of
    // which the first is, too.
    EXPECT_EQ(launches(), 2 * (3 * 4 - 1 + (layout.kinds == 2 ? 4 - 1 : 0)));
    // 2 or 5 of 16 passes are launched, and so are updates and evaluations.
    EXPECT_LT(3 * calls_["kernels"].as_int(), 2 * kernels);
    EXPECT_EQ(calls_["waits"].as_int(), waits) << layout.options;
    for (const char* log : {"replayed.jsonl", "launched.jsonl"}) std::filesystem::remove(dir_ / log);
  }
}

// NCCL asks that all ranks or none capture a call: where one device lacks the memory of a graph, none does.
TEST_F(EmulatedGraphs, AreLeftOutByAllRanksOfAnExchangeIfOneLacksThem) {
  const std::string options =
      kGpt2 + "--nproc 2 --tensor-model-parallel-size 2 --train-iters 4 --eval-iters 0 ";
  log_of(options + "--log-json launched.jsonl --cuda-graph-impl none", 1, 2);
  const Variable lacking("MEGALITH_EMULATOR_GRAPHLESS", "1");
  const std::string log = log_of(options + "--log-json left.jsonl", 2, 2);
  EXPECT_TRUE(
      has(log, "CUDA graphs are left out, since the device of another rank did not record the passes: "))
      << log;
  EXPECT_EQ(figures("left.jsonl"), figures("launched.jsonl"));
  EXPECT_EQ(launches(), 0);
}

// The log has the lines of all steps, in order, although each is printed after the next step has begun.
TEST_F(EmulatedGraphs, LeaveNoStepUnlogged) {
  const std::string options =
      kGpt2 + "--train-iters 7 --eval-interval 3 --eval-iters 1 --log-json late.jsonl";
  log_of(options, 1);
  std::vector<int64_t> numbers;
  for (const Json& line : lines("late.jsonl", "train")) numbers.push_back(line["iteration"].as_int());
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
}  // namespace megalith::test
