#include "libcore/plan/price/trainer.h"

#include <gtest/gtest.h>

#include "libcore/train/step/memory.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::on_this_processor;

TEST(Trainer, SaysWhatARunAllocatesToTheByte) {
  const PlanProblem p = on_this_processor(32000, 8);
  Candidate c{.micro_batch = 8, .recompute = Recomputed::kFull};
  ASSERT_FALSE(complete(p, c));
  TrainConfig train;
  train.micro_batch = train.global_batch = 8;
  train.recompute = Recompute::kFull;
  train.recompute_method = "uniform";
  train.recompute_layers = 1;
  ParallelConfig parallel;
  parallel.data = parallel.world = parallel.local_world = 1;
  const TrainerAnswer answer = ask_trainer(p, c);
  ASSERT_TRUE(answer.rank) << answer.refusal;
  EXPECT_EQ(
      answer.rank->estimate.allocated(),
      static_cast<double>(run_memory({static_cast<const ModelConfig&>(p.model), parallel, train}).total()));
}

TEST(Trainer, IsAskedForTheFormatThatIsPlanned) {
  PlanProblem p = on_this_processor(512, 2);
  p.precision = Precision::kHalf;
  const Candidate c{.micro_batch = 2};
  for (const bool fp16 : {false, true}) {
    p.fp16 = fp16;
    const TrainConfig train = trainer_configuration(p, c).train;
    EXPECT_EQ(train.fp16, fp16);
    EXPECT_EQ(train.bf16, !fp16);
  }
}

// In fp32 a parameter's moments take 8 bytes, 2 fewer where the first one is in bf16.
TEST(Trainer, IsAskedForTheTypeOfTheFirstMoment) {
  PlanProblem p = on_this_processor(512, 8);
  Candidate c{.micro_batch = 8};
  ASSERT_FALSE(complete(p, c));
  const double wide = worst_stage(p, c).estimate.optimizer,
               wide_run = ask_trainer(p, c).rank->estimate.optimizer;
  EXPECT_EQ(trainer_configuration(p, c).train.first_moments, MomentType::kFp32);
  p.software.first_moment_bytes = 2;
  EXPECT_EQ(trainer_configuration(p, c).train.first_moments, MomentType::kBf16);
  EXPECT_EQ(wide - worst_stage(p, c).estimate.optimizer, 2 * total_parameters(p.model));
  const double run = ask_trainer(p, c).rank->estimate.optimizer;
  EXPECT_NEAR((wide_run - run) / (2 * total_parameters(p.model)), 1, 1e-3);  // and gaps between parameters
}

// The planner and the program's rules read one table.
TEST(Trainer, IsNamedOnlyWhereThisVersionTrains) {
  for (const char* device : {"", "V100-SXM2-32GB", "A100-SXM-80GB", "RTX4090-24GB", "H100-SXM-80GB",
                             "MI300X-192GB", "Ascend910B-64GB"})
    for (const int world : {1, 2, 8})
      for (const bool fp16 : {false, true}) {
        PlanProblem p = on_this_processor(512, 8);
        if (*device) p.machine.device = find_accelerator(device);
        p.machine.world = p.machine.local_world = world;
        p.precision = Precision::kHalf;
        p.fp16 = fp16;
        Candidate c{.micro_batch = 1};
        ASSERT_FALSE(complete(p, c));
        const std::string name = device;
        const bool cuda = name.starts_with("A100") || name.starts_with("RTX") || name.starts_with("H100");
        const bool trains = name.empty() || cuda;
        EXPECT_EQ(ask_trainer_there(p, c).refusal.empty(), trains)
            << name << ' ' << world << ' ' << fp16 << ": " << ask_trainer_there(p, c).refusal;
        EXPECT_TRUE(ask_trainer(p, c).refusal.empty());  // the layout itself is one of the trainer's
      }
}

// The closed forms, by which plans for GPUs are judged, and the trainer's count differ by some per cent.
TEST(Trainer, IsNotNamedWhereItsOwnCountExceedsTheDevice) {
  PlanProblem p = on_this_processor(512, 8);
  p.machine.device = find_accelerator("RTX4090-24GB");
  p.precision = Precision::kHalf;
  Candidate c{.micro_batch = 1};
  ASSERT_FALSE(complete(p, c));
  const double needed = ask_trainer(p, c).rank->estimate.needed();
  p.machine.device.memory = needed;
  EXPECT_EQ(ask_trainer_there(p, c).refusal, "");
  p.machine.device.memory = needed / 2;
  const TrainerAnswer answer = ask_trainer_there(p, c);
  EXPECT_TRUE(answer.refusal.starts_with("this version's trainer would need ")) << answer.refusal;
  EXPECT_EQ(answer.rank->estimate.needed(), needed);
}

// CUDA graphs are a matter of speed: a plan that has all memory but theirs is run without them.
TEST(Trainer, RunsWithoutGraphsWhereOnlyTheirMemoryIsMissing) {
  PlanProblem p = on_this_processor(512, 8);
  p.machine.device = find_accelerator("RTX4090-24GB");
  p.precision = Precision::kHalf;
  Candidate c{.micro_batch = 1};
  ASSERT_FALSE(complete(p, c));
  const double with = ask_trainer(p, c).rank->estimate.needed();
  PlanProblem lean = p;
  lean.graphs = false;
  EXPECT_EQ(trainer_configuration(lean, c).train.cuda_graphs, "none");
  const double without = ask_trainer(lean, c).rank->estimate.needed();
  ASSERT_LT(without, with);
  p.machine.device.memory = with;
  EXPECT_EQ(ask_trainer_there(p, c).options, "");
  p.machine.device.memory = (with + without) / 2;
  const TrainerAnswer answer = ask_trainer_there(p, c);
  EXPECT_EQ(answer.refusal, "");
  EXPECT_EQ(answer.options, " --cuda-graph-impl none");
  EXPECT_EQ(answer.rank->estimate.needed(), without);
  p.run_words = " --seed 1 --cuda-graph-impl local";  // asked for
  EXPECT_TRUE(ask_trainer_there(p, c).refusal.starts_with("this version's trainer would need "));
  EXPECT_EQ(ask_trainer_there(p, c).options, "");
  p.run_words.clear();
  p.machine.device.memory = without / 2;
  EXPECT_NE(ask_trainer_there(p, c).refusal, "");
  EXPECT_EQ(ask_trainer_there(p, c).options, "");
}

// Its count takes time for each layer of a stage.
TEST(Trainer, IsNotAskedForMoreLayersThanItCountsInTime) {
  PlanProblem p = on_this_processor(512, 8);
  p.model.layers = 1024;
  Candidate c{.micro_batch = 8};
  ASSERT_FALSE(complete(p, c));
  EXPECT_EQ(ask_trainer(p, c).refusal, "");
  p.model.layers = 1025;
  EXPECT_EQ(ask_trainer(p, c).refusal,
            "a stage has 1025 layers, more than the 1024 whose memory in this version's trainer is counted");
  p.machine.world = p.machine.local_world = c.pipeline = 3;
  ASSERT_FALSE(complete(p, c));
  EXPECT_EQ(ask_trainer(p, c).refusal, "");
}

// An asynchronous save copies everything that is saved: 12 bytes per parameter, for fp32 parameters and two
// moments.
TEST(Trainer, CountsTheCopyOfASave) {
  PlanProblem p = on_this_processor(512, 8);
  Candidate c{.micro_batch = 8};
  ASSERT_FALSE(complete(p, c));
  const double without = ask_trainer(p, c).rank->estimate.needed(),
               closed = worst_stage(p, c).estimate.needed();
  p.save_copy = SaveCopy::kAll;
  const TrainerAnswer answer = ask_trainer(p, c);
  ASSERT_TRUE(answer.rank) << answer.refusal;
  RunShape run = run_shape(trainer_configuration(p, c));
  run.save_copy = p.save_copy;
  EXPECT_EQ(answer.rank->estimate.allocated(), static_cast<double>(run_memory(run).total()));
  EXPECT_EQ(answer.rank->estimate.needed() - without, 12 * total_parameters(p.model));
  EXPECT_EQ(worst_stage(p, c).estimate.needed() - closed, 12 * total_parameters(p.model));
  p.save_copy = SaveCopy::kParameters;
  EXPECT_EQ(ask_trainer(p, c).rank->estimate.needed() - without, 4 * total_parameters(p.model));
}

// The search prices memory with closed forms. The parts that these leave out (statistics of norms, a layer's
// scratch) are small.
TEST(Trainer, ClosedFormsAreNearItsCount) {
  constexpr double kNear = 0.2;
  for (int64_t vocab : {512, 32000})
    for (int micro_batch : {2, 8, 32}) {
      const PlanProblem p = on_this_processor(vocab, micro_batch);
      Candidate c{.micro_batch = micro_batch};
      ASSERT_FALSE(complete(p, c));
      const TrainerAnswer answer = ask_trainer(p, c);
      ASSERT_TRUE(answer.rank) << answer.refusal;
      EXPECT_NEAR(worst_stage(p, c).estimate.allocated() / answer.rank->estimate.allocated(), 1, kNear)
          << vocab << ' ' << micro_batch;
    }
}

// The trainer is asked about one stage of each kind only: of stages with equally many layers, the first holds
// the most.
TEST(Trainer, FindsTheFullestOfAllStages) {
  const PlanProblem p = test::gpt_22b(64);
  const Candidate all[] = {{.tensor = 8, .pipeline = 8},
                           {.tensor = 8, .pipeline = 8, .chunks = 3},
                           {.tensor = 4, .pipeline = 8, .context = 2, .sequence = true},
                           {.tensor = 8, .pipeline = 8, .first_layers = 3, .last_layers = 9},
                           {.tensor = 2,
                            .pipeline = 16,
                            .data = 2,
                            .first_layers = 1,
                            .last_layers = 5,
                            .recompute_layers = 2,
                            .sharding = Sharding::kOptimizer,
                            .recompute = Recomputed::kFull}};
  for (Candidate c : all) {
    c.micro_batch = 1;
    c.global_batch = 16;
    c.microbatches = c.global_batch / c.data;
    SCOPED_TRACE(concat(c.pipeline, " stages in ", c.chunks, " chunks, first ", c.first_layers));
    const TrainerAnswer answer = ask_trainer(p, c);
    ASSERT_TRUE(answer.rank) << answer.refusal;
    RunShape run = run_shape(trainer_configuration(p, c));
    run.train.device = "cuda";
    run.vocabulary = gpu_vocabulary(static_cast<size_t>(p.machine.device.memory));
    int fullest = -1;
    size_t most = 0;
    for (int stage = 0; stage < c.pipeline; ++stage)
      if (const size_t total = run_memory(run, {.pipeline = stage}).on_device(); total > most) {
        most = total;
        fullest = stage;
      }
    EXPECT_EQ(answer.rank->stage, fullest);
    EXPECT_EQ(answer.rank->estimate.needed(), static_cast<double>(most));
  }
}

// On a GPU our tables have the closed forms' rows, 50304 for 50257 ids. On a processor they have no padding,
// which closed forms count.
TEST(Trainer, CountsThePaddingOfTheVocabularyAsClosedFormsDo) {
  PlanProblem p = on_this_processor(50257, 8);
  Candidate c{.micro_batch = 8};
  ASSERT_FALSE(complete(p, c));
  const auto parameters = [&] { return ask_trainer(p, c).rank->estimate.parameters; };
  const double closed = worst_stage(p, c).estimate.parameters, rows = 50304 - 50257;
  EXPECT_NEAR(parameters(), closed - rows * 256 * 4, 4096);
  p.machine.device = find_accelerator("H200");
  EXPECT_NEAR(parameters(), closed, 4096);
}

TEST(Trainer, NamesWhatOnlyMegatronRuns) {
  PlanProblem p = on_this_processor(512, 8);
  Candidate c{.micro_batch = 8, .sharding = Sharding::kParameters};
  ASSERT_FALSE(complete(p, c));
  EXPECT_NE(ask_trainer(p, c).refusal.find("ZeRO-3"), std::string::npos);
  p.precision = Precision::kFp8;
  c.sharding = Sharding::kNone;
  EXPECT_NE(ask_trainer(p, c).refusal.find("8 and 4 bits"), std::string::npos);
  p.model.experts = 8;
  EXPECT_NE(ask_trainer(p, c).refusal.find("mixtures of experts (--num-experts)"), std::string::npos);
  EXPECT_FALSE(ask_trainer(p, c).rank);
}

}  // namespace
}  // namespace megalith
