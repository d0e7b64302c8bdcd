// Results that are read after the next step has begun, and samples that come beside the step before.
#include "libcore/train/host/step_results.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/train/step/emulated_trainer.h"

namespace megalith {
namespace {

using test::EmulatedTrainer;

View scalars_of(Memory& memory) {
  return {memory.data.get(), DType::kF64, {StepScalar::kCount}};
}

TEST(StepResults, ComeInTheOrderOfTheStepsWithoutWaitingForLaterOnes) {
  const test::OwnEmulatedGpus gpus(2);
  const std::unique_ptr<Backend> backend = test::make_emulated_backend();
  Stream stream = backend->make_stream();
  Memory memory = backend->allocate(StepScalar::kCount * sizeof(double));
  StepResults results(stream);
  ASSERT_TRUE(results.late());
  for (const double value : {1.0, 2.0}) {
    stream.fill(scalars_of(memory), value);
    results.put(scalars_of(memory));
  }
  EXPECT_EQ(results.waiting(), 2U);
  EXPECT_THROW(results.put(scalars_of(memory)), Error);
  for (const double value : {1.0, 2.0}) EXPECT_EQ(results.take()[StepScalar::kNorm], value);
  EXPECT_THROW(results.take(), Error);
}

TEST(StepResults, AreThereAtOnceOnACpu) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  Memory memory = backend->allocate(StepScalar::kCount * sizeof(double));
  StepResults results(stream);
  EXPECT_FALSE(results.late());
  stream.fill(scalars_of(memory), 3);
  results.put(scalars_of(memory));
  stream.fill(scalars_of(memory), 4);
  EXPECT_EQ(results.take()[StepScalar::kLoss], 3);
}

/// The loss mask of one sample makes the loss of its step infinite, so that the step is skipped.
SampleReader with_infinite_sample(int64_t number) {
  return [number](int64_t index, const SampleView& out) {
    test::sample_with_gaps(index, out);
    if (index == number) out.loss_mask[0] = std::numeric_limits<float>::infinity();
  };
}

struct Figures {
  std::vector<double> losses, norms;
  std::vector<bool> skipped;
  std::vector<float> values;
  bool operator==(const Figures&) const = default;

  void add(const Trainer::StepResult& result) {
    if (!result.skipped) {  // those of skipped steps are no numbers
      losses.push_back(result.loss);
      norms.push_back(result.grad_norm);
    }
    skipped.push_back(result.skipped);
  }
};

constexpr int kSteps = 6, kBatch = 6;

/// It has one layer, since results of more are the same.
PretrainConfig one_layer() {
  PretrainConfig config = test::three_microbatches();
  config.model.layers = 1;
  config.finish();
  return config;
}

/// The rate of a step after so many updates.
double rate_after(int64_t updates) {
  return 1e-2 / static_cast<double>(updates + 1);
}

/// Reads each result before the next step begins.
Figures at_once(const SampleReader& samples) {
  EmulatedTrainer run(one_layer());
  Figures figures;
  for (int step = 0; step < kSteps; ++step)
    figures.add(run.trainer.step(samples, kBatch * step, rate_after(run.trainer.optimizer().steps())));
  figures.values = run.values();
  return figures;
}

/// Reads each result when the next step has begun.
Figures late(const SampleReader& samples, unsigned order) {
  EmulatedTrainer run(one_layer(), order);
  EXPECT_TRUE(run.trainer.can_run_ahead());
  Figures figures;
  for (int step = 0; step < kSteps; ++step) {
    const int64_t known = run.trainer.optimizer().steps();
    const Trainer::StepRate rate{.value = rate_after(known + (step > 0 ? 1 : 0)),
                                 .if_skipped = rate_after(known)};
    run.trainer.begin_step(samples, kBatch * step, rate, {});
    if (step > 0) figures.add(run.trainer.finish_step());
  }
  figures.add(run.trainer.finish_step());
  figures.values = run.values();
  return figures;
}

// A step that follows a skipped one takes its rate and its corrections, which the host did not know. The
// device works in several orders where a step is skipped between others, and in one elsewhere.
TEST(LateResults, AreTheBitsOfThoseThatAreReadAtOnce) {
  using Orders = std::vector<unsigned>;
  for (const auto& [infinite, orders] :
       {std::pair<int64_t, Orders>{-1, {2}}, {0, {3}}, {2 * kBatch + 1, {1, 2, 3}}, {5 * kBatch, {2}}}) {
    const SampleReader samples = with_infinite_sample(infinite);
    const Figures want = at_once(samples);
    for (const unsigned order : orders) EXPECT_EQ(late(samples, order), want) << infinite << order;
    EXPECT_EQ(std::count(want.skipped.begin(), want.skipped.end(), true), infinite < 0 ? 0 : 1);
  }
}

// The scale that the next step needs depends on the result.
TEST(LateResults, AreReadAtOnceWithADynamicLossScale) {
  PretrainConfig config = test::three_microbatches();
  config.train.fp16 = true;
  config.finish();
  EmulatedTrainer run(config);
  EXPECT_FALSE(run.trainer.can_run_ahead());
  run.trainer.begin_step(test::tiny_sample, 0, {1e-3, 1e-3}, {});
  EXPECT_THROW(run.trainer.begin_step(test::tiny_sample, 6, {1e-3, 1e-3}, {}), Error);
  run.trainer.finish_step();
}

// The samples of the next step lie in page-locked memory while those of this one are copied; a step makes one
// copy of its samples and one of its scalars, whatever its micro-batches.
TEST(LateResults, FollowOneCopyOfSamplesPerStep) {
  EmulatedTrainer run(test::three_microbatches());
  run.trainer.step(test::tiny_sample, 0, 1e-3);
  const emulator::CallCounts before = test::emulated_controls().counts;
  run.trainer.step(test::tiny_sample, kBatch, 1e-3);
  const emulator::CallCounts after = test::emulated_controls().counts;
  EXPECT_EQ(after.copies_in - before.copies_in, 2);
  EXPECT_EQ(after.copies_out - before.copies_out, 1);
  EXPECT_EQ(after.waits - before.waits, 1);
  EXPECT_EQ(after.allocations, before.allocations);
}

}  // namespace
}  // namespace megalith
