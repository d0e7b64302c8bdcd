// Passes that the emulated device repeats as graphs, beside the same passes enqueued kernel by kernel.
#include "libcore/train/step/repeated_passes.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/train/step/emulated_trainer.h"
#include "tests/train/step/emulated_trainers.h"

namespace megalith {
namespace {

using test::EmulatedTrainer;

/// The losses and the gradients' norms of steps, and the parameters after them.
struct Outcome {
  std::vector<double> figures;
  std::vector<float> values;
  bool operator==(const Outcome&) const = default;
};

constexpr int kSteps = 4;

Outcome train(PretrainConfig config, const std::string& graphs, unsigned order,
              const std::function<void(Trainer&, int step)>& before_step = {}) {
  config.train.cuda_graphs = graphs;
  EmulatedTrainer run(config, order);
  Outcome outcome;
  const int batch = config.train.global_batch;
  for (int step = 0; step < kSteps; ++step) {
    if (before_step) before_step(run.trainer, step);
    const Trainer::StepResult result = run.trainer.step(test::sample_with_gaps, batch * step, 1e-2);
    outcome.figures.insert(outcome.figures.end(), {result.loss, result.grad_norm});
  }
  outcome.values = run.values();
  run.trainer.check_memory();
  return outcome;
}

long launches() {
  return test::emulated_controls().counts.graph_launches;
}

// Labels that count differ from micro-batch to micro-batch, and masks of dropout from sample to sample: both
// are in the device's memory.
TEST(RepeatedPasses, HaveTheBitsOfPassesThatAreEnqueued) {
  for (const bool llama : {false, true})
    for (const bool bf16 : {false, true}) {
      PretrainConfig config = test::three_microbatches(llama);
      config.train.bf16 = bf16;
      const long before = launches();
      const Outcome eager = train(config, "none", 1);
      EXPECT_EQ(launches(), before);
      for (const unsigned order : {1U, 2U, 3U})
        EXPECT_EQ(train(config, "local", order), eager) << llama << order;
      EXPECT_GT(launches(), before);
    }
}

TEST(RepeatedPasses, HaveTheBitsOfPassesThatAreEnqueuedWhenTheyRecompute) {
  PretrainConfig config = test::three_microbatches();
  config.train.recompute = Recompute::kFull;
  EXPECT_EQ(train(config, "local", 2), train(config, "none", 1));
}

// A step's last micro-batch is a kind of its own. Of each kind the first passes are enqueued and the second
// ones recorded: those of micro-batches 0 and 1 of the first step, and the last ones of two steps.
TEST(RepeatedPasses, AreRecordedOncePerKind) {
  const emulator::CallCounts before = test::emulated_controls().counts;
  train(test::three_microbatches(), "local", 1);
  const emulator::CallCounts after = test::emulated_controls().counts;
  EXPECT_EQ(after.captures - before.captures, 2);
  EXPECT_EQ(after.graph_launches - before.graph_launches, 3 * kSteps - 2);
}

// An evaluation between two steps has its own addresses, and may ask for more scratch memory.
TEST(RepeatedPasses, SurviveEvaluationsAndLargerScratchMemory) {
  const auto evaluate = [](Trainer& trainer, int step) {
    trainer.evaluate(test::tiny_sample, 100);
    if (step == 2) trainer.stream().backend().reserve_scratch(trainer.stream(), size_t{64} << 20);
  };
  const PretrainConfig config = test::three_microbatches();
  EXPECT_EQ(train(config, "local", 3, evaluate), train(config, "none", 1, evaluate));
}

// Each length is a kind, and so is the last micro-batch of a step; the lengths that come after eight kinds
// are enqueued.
TEST(RepeatedPasses, AreOfAFewLengths) {
  const auto outcome = [](const std::string& graphs) {
    PretrainConfig config = test::three_microbatches();
    config.train.cuda_graphs = graphs;
    RunShape shape = EmulatedTrainer::shape_of(config);
    shape.samples.short_ones = true;
    EmulatedTrainer run(shape, 2);
    SampleSource samples(test::tiny_sample);
    samples.length = [](int64_t index) { return 1 + index / 2 % 9; };  // of both samples of a micro-batch
    std::vector<double> losses;
    for (int step = 0; step < 9; ++step) losses.push_back(run.trainer.step(samples, 6 * step, 1e-2).loss);
    return losses;
  };
  const emulator::CallCounts before = test::emulated_controls().counts;
  const std::vector<double> replayed = outcome("local");
  const emulator::CallCounts after = test::emulated_controls().counts;
  EXPECT_EQ(replayed, outcome("none"));
  // Micro-batches have 1 to 9 rows in turn, each number three times; those of 3, 6 and 9 rows are last ones.
  // The first of a kind is enqueued, and so are those of 9 rows, the ninth kind.
  EXPECT_EQ(after.captures - before.captures, 8);
  EXPECT_EQ(after.graph_launches - before.graph_launches, 2 * 8);
}

// Graphs have the scale's number in them, which here doubles after each step.
TEST(RepeatedPasses, AreRecordedAgainForAnotherLossScale) {
  PretrainConfig config = test::three_microbatches();
  config.train.fp16 = true;
  config.train.initial_loss_scale = 64;
  config.train.loss_scale_window = 1;
  config.finish();
  const long before = launches();
  EXPECT_EQ(train(config, "local", 3), train(config, "none", 1));
  EXPECT_GT(launches(), before);
}

/// No memory is left on the emulated device during the lifetime.
class FullDevice {
 public:
  FullDevice() {
    test::emulated_controls().fault = 2;  // cudaErrorMemoryAllocation
    test::emulated_controls().fault_after = -1;
  }
  ~FullDevice() {
    test::emulated_controls().fault = 0;
    test::emulated_controls().fault_after = 0;
  }
  FullDevice(const FullDevice&) = delete;
  FullDevice& operator=(const FullDevice&) = delete;
};

// By then the first step's second micro-batch is a graph, and the second step replays it twice; the last
// one's passes cannot become one.
TEST(RepeatedPasses, AreEnqueuedWhereTheDeviceLacksTheMemoryOfAGraph) {
  const PretrainConfig config = test::three_microbatches();
  const Outcome eager = train(config, "none", 1);
  const long before = launches();
  std::optional<FullDevice> full;
  const auto fill = [&full](Trainer&, int step) {
    if (step == 1) full.emplace();
  };
  EXPECT_EQ(train(config, "local", 2, fill), eager);
  EXPECT_EQ(launches() - before, 3);
}

// Spans of work are timed one by one.
TEST(RepeatedPasses, AreEnqueuedWhileTheyAreTraced) {
  const long before = launches();
  const auto trace = [](Trainer& trainer, int) { trainer.set_traced(true); };
  const Outcome traced = train(test::three_microbatches(), "local", 1, trace);
  EXPECT_EQ(launches(), before);
  EXPECT_EQ(traced, train(test::three_microbatches(), "none", 1));
}

// The first micro-batch of a step waits for parameters, and the last one sums gradients, over both ranks.
// What is between them is repeated.
TEST(RepeatedPasses, LeaveOutPassesThatExchangeTensors) {
  ParallelConfig parallel{.data = 2};
  parallel.sharding = Sharding::kOptimizer;
  const auto outcome = [&](const std::string& graphs, unsigned order) {
    test::EmulatedTrainers trainers(parallel);
    trainers.config.train.cuda_graphs = graphs;
    trainers.config.train.global_batch = 4 * 2 * trainers.config.train.micro_batch;
    trainers.config.finish();
    Outcome of_rank;
    trainers.run(order, [&](Trainer& trainer, int rank) {
      std::vector<double> losses;
      for (int step = 0; step < 3; ++step)
        losses.push_back(trainer.step(test::tiny_sample, 16 * step, 1e-2).loss);
      std::vector<float> values = test::EmulatedTrainers::read(trainer, trainer.store().values());
      if (rank == 1) of_rank = {losses, std::move(values)};
    });
    return of_rank;
  };
  const Outcome eager = outcome("none", 1);
  const emulator::CallCounts before = test::emulated_controls().counts;
  EXPECT_EQ(outcome("local", 2), eager);
  const emulator::CallCounts after = test::emulated_controls().counts;
  EXPECT_EQ(after.captures - before.captures, 2);  // by each rank
  EXPECT_EQ(after.graph_launches - before.graph_launches,
            2 * (1 + 2 + 2));  // one of 2 kinds is enqueued first
}

TEST(RepeatedPasses, AreThoseThatExchangeNothing) {
  struct Case {
    ParallelConfig parallel;
    std::string graphs, text;
    bool any, first, last;
    int batch = 12;  // of micro-batches of 2
  };
  const auto sharded = [](ParallelConfig parallel, Sharding sharding) {
    parallel.sharding = sharding;
    return parallel;
  };
  for (const Case& c :
       {Case{{.data = 1}, "local", "passes of micro-batches are replayed", true, true, true},
        {{.data = 1}, "transformer_engine", "passes of micro-batches are replayed", true, true, true},
        {{.data = 1}, "none", "not used: --cuda-graph-impl none", false, false, false},
        {{.tensor = 2}, "local", "not used: tensor-parallel", false, false, false},
        {{.context = 2}, "local", "not used: context-parallel", false, false, false},
        {{.pipeline = 2}, "local", "not used: pipeline stages", false, false, false},
        {{.data = 2}, "local", "but for each step's last one", true, true, false},
        {{.data = 2}, "local", "not used: the passes of each micro-batch", false, false, false, 4},
        {sharded({.data = 2}, Sharding::kOptimizer), "local", "and its first one", true, false, false},
        {sharded({.data = 2}, Sharding::kOptimizer), "local", "not used: the passes", false, false, false, 8},
        {sharded({.data = 2}, Sharding::kGradients), "local", "not used: gradients", false, false, false}}) {
    RunShape run = run_shape(test::tiny_config());
    run.parallel = c.parallel;
    run.train.global_batch = c.batch;
    run.train.cuda_graphs = c.graphs;
    const RepeatablePasses passes = repeatable_passes(run);
    EXPECT_NE(passes.text.find(c.text), std::string::npos) << passes.text;
    EXPECT_EQ(passes.any, c.any) << passes.text;
    EXPECT_EQ(passes.first, c.first) << passes.text;
    EXPECT_EQ(passes.last, c.last) << passes.text;
  }
}

}  // namespace
}  // namespace megalith
