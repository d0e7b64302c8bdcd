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

/// Counts the nodes of graphs that are made during its lifetime.
class GraphNodes {
 public:
  /// Each of so many ranks has made graphs that take about what the estimate counts, and no more.
  void expect_within(size_t estimated, long ranks) const {
    const long nodes = (test::emulated_controls().counts.graph_nodes - before_) / ranks;
    const size_t made = static_cast<size_t>(nodes) * kGraphNodeBytes;
    EXPECT_GT(made, 0U);
    EXPECT_LE(made, estimated);
    EXPECT_GE(3 * made, estimated);
  }

 private:
  const long before_ = test::emulated_controls().counts.graph_nodes;
};

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

/// What rank 1 sees of two steps of four micro-batches. Devices lie in `layout`, whose exchanges are cut in
/// up to `pieces` pieces.
struct RanksOfGraphs {
  ParallelConfig layout;
  int pieces = 1;

  Outcome train(const std::string& graphs, unsigned order,
                const std::function<void(Trainer&, int step)>& before_step = {}) const {
    test::EmulatedTrainers trainers(layout);
    PretrainConfig& config = trainers.config;
    config.model.layers = 2;
    config.model.seq_length = config.model.max_positions = 12;
    config.train.cuda_graphs = graphs;
    const int batch = 4 * layout.data * config.train.micro_batch;
    config.train.global_batch = batch;
    config.finish();
    trainers.cut = {.most = pieces, .least_bytes = 1};
    Outcome of_rank;
    trainers.run(order, [&](Trainer& trainer, int rank) {
      std::vector<double> losses;
      for (int step = 0; step < 2; ++step) {
        if (before_step) before_step(trainer, step);
        losses.push_back(trainer.step(test::tiny_sample, batch * step, 1e-2).loss);
      }
      losses.push_back(trainer.evaluate(test::tiny_sample, 100));
      std::vector<float> values = test::EmulatedTrainers::read(trainer, trainer.store().values());
      trainer.check_memory();
      if (rank == 1) of_rank = {losses, std::move(values)};
    });
    return of_rank;
  }
};

// The first micro-batch of a step waits for parameters, and the last one sums gradients, over both ranks.
// What is between them is repeated.
TEST(RepeatedPasses, LeaveOutPassesThatExchangeBesideThem) {
  RanksOfGraphs ranks{.layout = {.data = 2}};
  ranks.layout.sharding = Sharding::kOptimizer;
  const Outcome eager = ranks.train("none", 1);
  const emulator::CallCounts before = test::emulated_controls().counts;
  EXPECT_EQ(ranks.train("local", 2), eager);
  const emulator::CallCounts after = test::emulated_controls().counts;
  EXPECT_EQ(after.captures - before.captures, 2);  // by each rank
  EXPECT_EQ(after.graph_launches - before.graph_launches,
            2 * (1 + 2));  // the first of those inside is enqueued
}

/// A layout whose passes exchange tensors, and the graphs of a rank: kinds, and launches in two steps.
struct ExchangingLayout {
  const char* name;
  ParallelConfig parallel;
  bool sequence, rank_order;
  int pieces;
  long kinds, launches;

  RanksOfGraphs ranks() const {
    RanksOfGraphs made{.layout = parallel, .pieces = pieces};
    made.layout.sequence = sequence;
    made.layout.rank_order = rank_order;
    return made;
  }
};

// By hand: of four micro-batches the last one is a kind of its own, which only ranks without copies repeat.
// The first of each kind is enqueued.
constexpr long kInside = 2 * 3 - 1, kLast = 2 - 1;
const ExchangingLayout kExchanging[] = {
    {"Tensor", {.tensor = 2, .data = 1}, false, false, 1, 2, kInside + kLast},
    {"TensorInPieces", {.tensor = 2, .data = 1}, false, false, 4, 2, kInside + kLast},
    {"TensorSequenceInPieces", {.tensor = 2, .data = 1}, true, true, 2, 2, kInside + kLast},
    {"Context", {.context = 2, .data = 1}, false, false, 1, 1, kInside},
    {"TensorContext", {.tensor = 2, .context = 2, .data = 1}, false, true, 2, 1, kInside},
    {"TensorData", {.tensor = 2, .data = 2}, false, false, 2, 1, kInside},
};

class RepeatedExchanges : public testing::TestWithParam<ExchangingLayout> {};
INSTANTIATE_TEST_SUITE_P(All, RepeatedExchanges, testing::ValuesIn(kExchanging),
                         [](const auto& instance) { return instance.param.name; });

// Each repetition of a pass is a call of NCCL's on each rank, which the fake compares with the other ranks'.
// Two ranks do their work in two orders, four, which take as long for one, in another.
TEST_P(RepeatedExchanges, HaveTheBitsOfExchangesThatAreEnqueued) {
  const RanksOfGraphs ranks = GetParam().ranks();
  const long world = ranks.layout.tensor * ranks.layout.context * ranks.layout.data;
  const Outcome eager = ranks.train("none", 1);
  size_t estimated = 0;
  const auto note = [&](Trainer& trainer, int) {
    if (trainer.groups().world.rank() == 0) estimated = trainer.memory().graphs;
  };
  for (const unsigned order : world == 2 ? std::vector{1U, 2U} : std::vector{3U}) {
    const GraphNodes nodes;
    const emulator::CallCounts before = test::emulated_controls().counts;
    EXPECT_EQ(ranks.train("local", order, note), eager) << order;
    nodes.expect_within(estimated, world);
    const emulator::CallCounts after = test::emulated_controls().counts;
    EXPECT_EQ(after.captures - before.captures, world * GetParam().kinds);
    EXPECT_EQ(after.graph_launches - before.graph_launches, world * GetParam().launches);
  }
}

/// No graph can be made on this device during the lifetime.
class GraphlessDevice {
 public:
  explicit GraphlessDevice(int device) { test::emulated_controls().graphless_device = device; }
  ~GraphlessDevice() { test::emulated_controls().graphless_device = -1; }
  GraphlessDevice(const GraphlessDevice&) = delete;
  GraphlessDevice& operator=(const GraphlessDevice&) = delete;
};

// NCCL asks that a call is captured by all ranks or by none: the rank whose graph was made does not use it.
TEST(RepeatedPasses, AreEnqueuedByAllRanksOfAnExchangeIfOneLacksAGraph) {
  for (const ParallelConfig& layout : {ParallelConfig{.tensor = 2, .data = 1}, {.context = 2, .data = 1}}) {
    const RanksOfGraphs ranks{.layout = layout};
    const Outcome eager = ranks.train("none", 1);
    const GraphlessDevice one(1);
    const emulator::CallCounts before = test::emulated_controls().counts;
    EXPECT_EQ(ranks.train("local", 2), eager);
    const emulator::CallCounts after = test::emulated_controls().counts;
    EXPECT_EQ(after.captures - before.captures, 2);
    EXPECT_EQ(after.graph_launches, before.graph_launches);
  }
}

/// Makes graphs of the first step out of date: their scratch memory is replaced before the second one.
void grow_scratch(Trainer& trainer, int step) {
  if (step == 1) trainer.stream().backend().reserve_scratch(trainer.stream(), size_t{64} << 20);
}

// Both ranks get larger scratch memory before the second step, and record the passes inside a step again.
TEST(RepeatedPasses, AreRecordedAgainByAllRanksOfAnExchange) {
  const RanksOfGraphs ranks{.layout = {.tensor = 2, .data = 1}};
  const Outcome eager = ranks.train("none", 1);
  const long before = test::emulated_controls().counts.captures;
  EXPECT_EQ(ranks.train("local", 3, grow_scratch), eager);
  EXPECT_EQ(test::emulated_controls().counts.captures - before, 2 * (2 + 1));
}

// Each rank has one kind, that of the passes inside a step. Its graph is freed before the next one is made.
TEST(RepeatedPasses, TakeNoMemoryForAGraphThatIsOutOfDate) {
  const RanksOfGraphs ranks{.layout = {.data = 2}};
  emulator::CallCounts& counts = test::emulated_controls().counts;
  ASSERT_EQ(counts.graphs, 0);
  counts.most_graphs = {};
  const long captures = counts.captures;
  ranks.train("local", 1, grow_scratch);
  EXPECT_EQ(counts.captures - captures, 2 * 2);
  EXPECT_EQ(counts.most_graphs, 2);
  EXPECT_EQ(counts.graphs, 0);
}

// The device counts kernels, products, copies and calls of NCCL.
TEST(RepeatedPasses, TakeNoMoreMemoryThanTheEstimateCounts) {
  for (const bool llama : {false, true}) {
    const GraphNodes nodes;
    EmulatedTrainer run(test::three_microbatches(llama));
    for (int step = 0; step < 2; ++step) run.trainer.step(test::tiny_sample, 6 * step, 1e-2);
    nodes.expect_within(run.trainer.memory().graphs, 1);
  }
}

// By hand: a sum of eight ranks in rank order is a copy, two exchanges of messages and a kernel. Of a piece
// of a sequence that has the rows of all eight, each rank exchanges eight times, and copies and adds once.
TEST(RepeatedPasses, TakeMemoryForEachCallOfTheirExchanges) {
  const auto nodes = [](const ParallelConfig& parallel, int64_t exchanges, int64_t summed) {
    StageCost passes;
    passes.exchanges = exchanges;
    passes.summed = summed;
    RunShape run = run_shape(test::tiny_config());
    run.parallel = parallel;
    run.train.global_batch = 12;
    return (graph_bytes(run, passes) - graph_bytes(run, {})) / kGraphNodeBytes;
  };
  ParallelConfig parallel{.tensor = 8, .data = 1};
  EXPECT_GE(nodes(parallel, 1, 0), 2 * 1U);  // in two graphs
  parallel.rank_order = true;
  EXPECT_GE(nodes(parallel, 1, 0), 2 * 4U);
  parallel.sequence = true;
  EXPECT_GE(nodes(parallel, 1, 0), 2 * 10U);
  EXPECT_GE(nodes(parallel, 0, 1), 4U);  // in the graph of the last passes of a step
  parallel.data = 2;
  EXPECT_GE(nodes(parallel, 1, 0), 10U);
  EXPECT_EQ(nodes(parallel, 0, 1), 0U);  // these passes are launched
}

TEST(RepeatedPasses, TakeMemoryForEachKind) {
  RunShape run = EmulatedTrainer::shape_of(test::three_microbatches());
  const size_t two = run_memory(run).graphs;
  EXPECT_EQ(two % (2 * kGraphNodeBytes), 0U);
  run.samples.short_ones = true;
  EXPECT_EQ(run_memory(run).graphs, 4 * two);  // eight kinds
  run.samples.short_ones = false;
  run.train.cuda_graphs = "none";
  EXPECT_EQ(run_memory(run).graphs, 0U);
  run.train.cuda_graphs = "local";
  run.train.device = "cpu";
  EXPECT_EQ(run_memory(run).graphs, 0U);
}

TEST(RepeatedPasses, AreThoseThatWaitForNothingBesideThem) {
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
        {{.tensor = 2, .data = 1}, "local", "replayed, with their exchanges", true, true, true},
        {{.context = 2, .data = 1},
         "local",
         "with their exchanges, but for each step's last one",
         true,
         true,
         false},
        {{.tensor = 2, .data = 2}, "local", "exchanges, but for each step's last one", true, true, false},
        {{.pipeline = 2}, "local", "not used: passes of a pipeline's stages", false, false, false},
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
  RunShape shared = run_shape(test::tiny_config());
  shared.parallel = {.tensor = 2, .data = 1};
  shared.nccl.channels = 0;
  EXPECT_EQ(repeatable_passes(shared).text,
            "not used: ranks that share a GPU wait for each other's hosts within the passes");
  // The sums of a step's figures are such calls.
  RunShape unmixed = run_shape(test::tiny_config());
  unmixed.train.global_batch = 12;
  unmixed.nccl.mixes_graphs = false;
  unmixed.parallel = {.data = 2};
  EXPECT_TRUE(repeatable_passes(unmixed).any);
  for (const ParallelConfig& parallel : {ParallelConfig{.tensor = 2, .data = 1}, {.context = 2, .data = 1}}) {
    unmixed.parallel = parallel;
    EXPECT_EQ(repeatable_passes(unmixed).text,
              "not used: NCCL_GRAPH_MIXING_SUPPORT=0 forbids other calls of NCCL after those of a graph");
  }
}

}  // namespace
}  // namespace megalith
