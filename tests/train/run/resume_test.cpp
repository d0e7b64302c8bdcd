// Runs that resume: after a signal, in each precision, with other options, or from weights alone.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/train/run/loop.h"
#include "tests/support/tensor_copies.h"
#include "tests/train/run/loop_fixture.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Loop;
using test::tiny_data;
using test::tiny_sample;

/// Counts the run in samples in place of steps; without a warm-up.
void count_in_samples(TrainConfig& train, int64_t samples) {
  train.iters.reset();
  train.decay_iters.reset();
  train.samples = samples;
  train.warmup_iters = 0;
}

/// Such a run, in batches by a --step-batch-size-schedule.
void take_schedule(TrainConfig& train, const std::string& schedule, int64_t samples) {
  count_in_samples(train, samples);
  train.global_batch = 0;
  train.batch_schedule = schedule;
}

TEST_F(Loop, ResumesBitForBit) {
  train(config("whole"), tiny_data(), nullptr);
  PretrainConfig first = config("parts");
  first.train.exit_interval = 10;
  EXPECT_EQ(train(first, tiny_data(), nullptr).iteration, 10);
  EXPECT_TRUE(logged("exiting program at iteration 10"));
  EXPECT_EQ(train(config("parts"), tiny_data(), nullptr).iteration, 20);
  EXPECT_TRUE(logged("  successfully loaded checkpoint from "));
  expect_same_checkpoint("whole", "parts", 20);
  expect_same_figures("whole", "parts");
}

TEST_F(Loop, ResumesBitForBitIn16Bits) {
  for (const char* name : {"whole", "parts"}) {
    PretrainConfig c = config(name);
    c.train.bf16 = true;
    if (std::string(name) == "parts") {
      c.train.exit_interval = 10;
      train(c, tiny_data(), nullptr);
      c.train.exit_interval.reset();
    }
    train(c, tiny_data(), nullptr);
  }
  expect_same_checkpoint("whole", "parts", 20);
  expect_same_figures("whole", "parts");
}

// One run is interrupted during its first steps, in which the loss scale still falls. Scale, step count and
// patience must be restored.
TEST_F(Loop, ResumesBitForBitInFp16WithItsLossScale) {
  for (const char* name : {"whole", "parts"}) {
    PretrainConfig c = config(name);
    c.train.fp16 = true;
    c.train.initial_loss_scale = 0x1p24;
    c.train.loss_scale_window = 10;
    if (std::string(name) == "parts") {
      c.train.exit_interval = 3;
      train(c, tiny_data(), nullptr);
      c.train.exit_interval.reset();
    }
    train(c, tiny_data(), nullptr);
  }
  expect_same_checkpoint("whole", "parts", 20);
  expect_same_figures("whole", "parts");
  const std::vector<Json> steps = figures("whole", "train");
  EXPECT_TRUE(steps[0]["skipped"].as_bool());
  EXPECT_EQ(steps[0]["loss_scale"].as_double(),
            0x1p24);  // the first overflow is tolerated (--hysteresis 2)
  EXPECT_EQ(steps[1]["loss_scale"].as_double(), 0x1p23);
  int good = 0;
  for (const Json& step : steps) good += !step["skipped"].as_bool();
  EXPECT_GE(good, 10);
  EXPECT_TRUE(logged("| loss scale: "));
  const Json state = Json::parse(read_file(checkpoint("parts", 3) / kStateFile), "state");
  EXPECT_EQ(state["loss_scale"]["hysteresis_tracker"].as_int(), -1);  // 2 minus 3 overflows
}

// The expected steps are Megatron's (update_train_iters, run in Python): a ramp from 4 by 4 to 12 over 40 of
// 100 samples has five steps of 4, three of 8 and four of 12.
TEST_F(Loop, GrowsItsBatchAndResumesBitForBit) {
  for (const char* name : {"whole", "parts"}) {
    PretrainConfig c = config(name);
    count_in_samples(c.train, 100);
    c.train.global_batch = 12;
    c.train.rampup = {"4", "4", "40"};
    c.train.warmup_samples = 8;
    c.finish();
    ASSERT_EQ(c.train.iters, 12);
    Problems problems;
    c.validate(problems);
    problems.throw_if_any();
    if (std::string(name) == "parts") {
      c.train.exit_interval = 7;
      train(c, tiny_data(), nullptr);
      c.train.exit_interval.reset();
    }
    EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 12);
  }
  expect_same_checkpoint("whole", "parts", 12);
  expect_same_figures("whole", "parts");
  std::vector<int64_t> batches;
  for (const Json& step : figures("whole", "train")) batches.push_back(step["batch"].as_int());
  EXPECT_EQ(batches, (std::vector<int64_t>{4, 4, 4, 4, 4, 8, 8, 8, 12, 12, 12, 12}));
  EXPECT_EQ(figures("whole", "train").back()["consumed_samples"].as_int(), 92);
}

// Samples of 9 tokens: batches of 4 from 0 on, of 8 from 20 samples on, of 12 from 48 on (432 tokens).
// Counted by hand: five steps of 4, four of 8 (to 52 samples), four of 12. The rate of WSD is the peak until
// the last 40 samples.
TEST_F(Loop, TakesItsBatchesFromAScheduleAndResumesBitForBit) {
  for (const char* name : {"whole", "parts"}) {
    PretrainConfig c = config(name);
    take_schedule(c.train, "0:4 180:8 432:12", 100);
    c.train.warmup_samples = 8;
    c.train.decay = LrDecay::kWsd;
    c.train.wsd_samples = 40;
    c.train.wsd_decay = WsdDecay::kLinear;
    c.finish();
    ASSERT_EQ(c.train.iters, 13);
    Problems problems;
    c.validate(problems);
    problems.throw_if_any();
    for (const int64_t part : {3, 7})
      if (std::string(name) == "parts") {
        c.train.exit_interval = part;
        train(c, tiny_data(), nullptr);
        c.train.exit_interval.reset();
      }
    EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 13);
  }
  expect_same_checkpoint("whole", "parts", 13);
  expect_same_figures("whole", "parts");
  std::vector<int64_t> batches;
  for (const Json& step : figures("whole", "train")) batches.push_back(step["batch"].as_int());
  EXPECT_EQ(batches, (std::vector<int64_t>{4, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12}));
  EXPECT_EQ(figures("whole", "train").back()["consumed_samples"].as_int(), 100);
  EXPECT_TRUE(logged("step batch size schedule (3 steps):"));
  EXPECT_TRUE(logged("  >= 180 tokens (20 samples) -> batch_size=8, num_microbatches=4"));
  // After 52 + 12 samples, 4 of the 40 are over.
  EXPECT_DOUBLE_EQ(figures("whole", "train")[9]["lr"].as_double(), 1e-3 + 0.9 * 9e-3);
  EXPECT_DOUBLE_EQ(figures("whole", "train")[8]["lr"].as_double(), 1e-2);
}

// The first level cannot be divided by micro-batches of 2, but the run that resumes is past it.
TEST_F(Loop, RefusesABatchOfItsScheduleThatItTakesAndCannotDivide) {
  PretrainConfig c = config("run");
  take_schedule(c.train, "0:4 180:8", 60);
  c.finish();
  c.train.exit_interval = 5;
  train(c, tiny_data(), nullptr);
  c.train.exit_interval.reset();
  c.train.micro_batch = 8;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 10);
  c.checkpoint.save = c.checkpoint.load = dir_ / "another";
  EXPECT_EQ(complaint(c, ErrorKind::kUsage),
            "--step-batch-size-schedule: 4, the batch from 0 samples on, is not a multiple of "
            "--micro-batch-size 8 * data-parallel size 1; nearest that work: 8");
}

// Two steps of 12 are done, and steps of 8 are left; but an evaluation would leave out 4 of its 12 samples.
TEST_F(Loop, RefusesAnEvaluationWhoseBatchItCannotDivide) {
  PretrainConfig c = config("run");
  take_schedule(c.train, "0:12 180:8", 60);
  c.finish();
  c.train.exit_interval = 2;
  train(c, tiny_data(), nullptr);
  c.train.exit_interval.reset();
  c.train.micro_batch = 8;
  EXPECT_EQ(complaint(c, ErrorKind::kUsage)
                .find("--step-batch-size-schedule: 12, the largest batch, which evaluations take, is not a "
                      "multiple of --micro-batch-size 8 * data-parallel size 1"),
            0U);
  c.train.eval_iters = 0;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 6);
}

// Batches of 4 and 8, of which micro-batches of 8 divide the larger one.
TEST_F(Loop, AcceptsABatchOfItsScheduleThatNoStepTakes) {
  PretrainConfig c = config("run");
  take_schedule(c.train, "0:4 180:8", 24);
  c.finish();
  train(c, tiny_data(), nullptr);
  c.train.micro_batch = 8;
  c.train.eval_only = true;
  train(c, tiny_data(), nullptr);  // an evaluation takes 8
  c.train.eval_only = false;
  c.train.micro_batch = 3;  // does not divide the batch that the next step would take
  EXPECT_NE(complaint(c, ErrorKind::kUsage).find("8, the largest batch, which evaluations take"),
            std::string::npos);
  DataSets data = tiny_data();
  data.valid = data.test = {};
  EXPECT_EQ(train(c, data, nullptr).iteration, 5);
}

TEST_F(Loop, TakesAFixedLossScaleAndAnotherPrecisionsCheckpoint) {
  PretrainConfig c = config("run");
  c.train.bf16 = true;
  c.train.loss_scale = 128;
  c.train.exit_interval = 10;
  train(c, tiny_data(), nullptr);
  EXPECT_TRUE(logged("| loss scale: 128.0 |"));
  c.train.bf16 = false;
  c.train.fp16 = true;
  c.train.loss_scale.reset();
  c.train.initial_loss_scale = 1024;
  c.train.exit_interval.reset();
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
  EXPECT_TRUE(logged("no loss scale in "));
  EXPECT_TRUE(logged("| loss scale: 1024.0 |"));
}

TEST_F(Loop, ResumesBitForBitAfterASignal) {
  train(config("whole"), tiny_data(), nullptr);
  for (const int number : {SIGTERM, SIGUSR1}) {
    const std::string name = number == SIGTERM ? "term" : "usr1";
    DataSets data = tiny_data();
    data.train.read = [number](int64_t index, const SampleView& out) {
      if (index == 4 * 7 + 1) std::raise(number);  // a sample of step 8, read during step 7
      tiny_sample(index, out);
    };
    const PretrainResult stopped = train(config(name), data, nullptr);
    EXPECT_TRUE(stopped.iteration == 7 || stopped.iteration == 8) << stopped.iteration;
    EXPECT_EQ(stopped.stopped_by, number == SIGTERM ? "SIGTERM" : "SIGUSR1");
    EXPECT_TRUE(stopped.saved);
    EXPECT_EQ(figures(name, "test").size(), 0U);  // no final evaluation
    train(config(name), tiny_data(), nullptr);
    expect_same_checkpoint("whole", name, 20);
    expect_same_figures("whole", name);
  }
}

/// tiny_data(), of which reading this validation sample sends the run a signal. `last`: the last such sample
/// that was read.
DataSets data_with_signal_at(int64_t sample, std::atomic<int64_t>& last) {
  DataSets data = tiny_data();
  data.valid.read = [sample, &last, samples = data.valid.read](int64_t index, const SampleView& out) {
    if (index == sample) std::raise(SIGTERM);
    last = std::max<int64_t>(last, index);
    samples.read(index, out);
  };
  return data;
}

// The evaluations after steps 5, 10, 15 and 20 read eight samples each; that at the end reads the next eight.
TEST_F(Loop, EndsAnEvaluationAtASignalAndRepeatsItWhenResumed) {
  train(config("whole"), tiny_data(), nullptr);
  for (const int ranks : {1, 2})
    for (const auto& [sample, iteration, before] : {std::tuple{9, 10, 1U}, std::tuple{33, 20, 4U}}) {
      const std::string name = concat("cut", ranks, sample);
      PretrainConfig c = config(name);
      c.parallel.data = ranks;
      c.parallel.finish();
      std::atomic<int64_t> last = 0;
      const PretrainResult stopped = train(c, data_with_signal_at(sample, last), nullptr);
      EXPECT_EQ(stopped.iteration, iteration);
      EXPECT_EQ(stopped.stopped_by, "SIGTERM");
      EXPECT_TRUE(stopped.saved);
      EXPECT_LT(last, sample / 4 * 4 + 4) << "the batch of the signal is the last";
      EXPECT_EQ(figures(name, "valid").size(), before);
      EXPECT_TRUE(logged("stopped before its end, no figures"));
      log_.lines.clear();
      EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
      if (ranks == 1) expect_same_checkpoint("whole", name, 20);
      EXPECT_EQ(computed(figures(name, "valid")).size(), 5U);
      if (ranks == 1) expect_same_figures("whole", name);
    }
}

// The run that repeats the evaluation ends at the interval, as one that nobody stopped had done. The next one
// trains on.
TEST_F(Loop, RepeatsAnEvaluationOnceWhereTheRunEndsThen) {
  PretrainConfig c = config("run");
  c.train.exit_interval = 10;
  std::atomic<int64_t> last = 0;
  EXPECT_EQ(train(c, data_with_signal_at(9, last), nullptr).iteration, 10);
  EXPECT_EQ(figures("run", "valid").size(), 1U);
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 10);
  EXPECT_EQ(figures("run", "valid").size(), 2U);
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
  EXPECT_EQ(figures("run", "valid").size(), 4U);
}

TEST_F(Loop, EvaluatesWithoutASecondStepWhenNothingIsLeft) {
  train(config("run"), tiny_data(), nullptr);
  log_.lines.clear();
  EXPECT_EQ(train(config("run"), tiny_data(), nullptr).iteration, 20);
  EXPECT_TRUE(logged("on test set"));
  EXPECT_FALSE(logged("saving checkpoint"));
  EXPECT_EQ(figures("run", "train").size(), 20U);
}

TEST_F(Loop, NamesEveryDifferenceOfTheModel) {
  PretrainConfig c = config("run");
  c.train.iters = c.train.decay_iters = 5;
  train(c, tiny_data(), nullptr);
  c.model.layers = 3;
  c.model.heads = c.model.query_groups = 4;
  c.model.hidden_dropout = 0;  // dropout may differ
  const std::string what = complaint(c, ErrorKind::kUsage);
  EXPECT_NE(what.find("--num-layers: checkpoint 2, command line 3"), std::string::npos) << what;
  EXPECT_NE(what.find("--num-attention-heads: checkpoint 2, command line 4"), std::string::npos) << what;
  EXPECT_EQ(what.find("dropout"), std::string::npos) << what;
}

TEST_F(Loop, AsksWhoseScheduleToTake) {
  PretrainConfig c = config("run");
  c.train.exit_interval = 5;
  train(c, tiny_data(), nullptr);
  c.train.exit_interval.reset();
  c.train.lr = 2e-2;
  c.train.decay = LrDecay::kLinear;
  const std::string what = complaint(c, ErrorKind::kUsage);
  EXPECT_NE(what.find("--lr: checkpoint 0.01, command line 0.02"), std::string::npos) << what;
  EXPECT_NE(what.find("--lr-decay-style: checkpoint cosine, command line linear"), std::string::npos) << what;
  c.checkpoint.override_scheduler = true;
  c.train.iters = 6;
  train(c, tiny_data(), nullptr);
  EXPECT_DOUBLE_EQ(figures("run", "train").back()["lr"].as_double(), 1e-3 + (1 - (24.0 - 8) / 72) * 19e-3);
  c.checkpoint.override_scheduler = false;
  c.checkpoint.use_checkpoint_scheduler = true;
  c.train.lr = 5;
  c.train.iters = 7;
  train(c, tiny_data(), nullptr);
  EXPECT_DOUBLE_EQ(figures("run", "train").back()["lr"].as_double(), 1e-3 + (1 - (28.0 - 8) / 72) * 19e-3);
}

// Without a decay, --train-iters may be raised: the rate has no end that would move.
TEST_F(Loop, ContinuesBeyondItsEndAtAConstantRate) {
  PretrainConfig c = config("run");
  c.train.decay = LrDecay::kConstant;
  c.train.iters = c.train.decay_iters = 5;
  train(c, tiny_data(), nullptr);
  c.train.iters = c.train.decay_iters = 7;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 7);
  EXPECT_DOUBLE_EQ(figures("run", "train").back()["lr"].as_double(), 1e-2);
  log_.lines.clear();
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 7);
  EXPECT_NE(std::find(log_.lines.begin(), log_.lines.end(),
                      "7 of 7 steps are done; to train longer, raise --train-iters"),
            log_.lines.end());
}

TEST_F(Loop, SaysWhatChangesTheOrderOfSamples) {
  PretrainConfig c = config("run");
  c.train.exit_interval = 5;
  train(c, tiny_data(), nullptr);
  c.train.exit_interval = 6;
  c.train.seed = 77;
  c.data.split = "8,1,1";
  train(c, tiny_data(), nullptr);
  EXPECT_TRUE(
      logged("warning: --seed is 77, but was 1234 when the checkpoint was saved: samples now come in another "
             "order"));
  EXPECT_TRUE(logged("warning: --split is "));
  EXPECT_TRUE(logged("dropout continues with the checkpoint's --seed 1234"));
}

TEST_F(Loop, SaysThatTheDataHaveOtherContents) {
  const auto write = [&](const std::string& name, int32_t first) {
    IndexedDatasetWriter writer(dir_ / name, IndexedDType::kU16);
    const std::vector<int32_t> ids{first, 2, 3};
    const int32_t length = 3;
    writer.add_document(ids, {&length, 1});
    writer.finish();
  };
  write("a", 1);
  write("b", 1);
  PretrainConfig c = config("run");
  c.data.data_path = {dir_ / "a", dir_ / "b", dir_ / "b"};
  const auto run = [&](int64_t end) {
    c.train.exit_interval = end;
    log_.lines.clear();
    train(c, tiny_data(), nullptr);
  };
  const std::string wanted = "warning: the data have other contents than when " + (dir_ / "run/iter_000000");
  run(2);
  run(3);
  EXPECT_FALSE(logged("have other contents"));
  write("b", 7);
  run(4);
  EXPECT_TRUE(logged(wanted + "3 was saved (dataset 2, 3 of 3): what follows is not the rest"));
  c.data.data_path = {dir_ / "a"};
  run(5);
  EXPECT_TRUE(logged(wanted + "4 was saved: what"));
}

TEST_F(Loop, BeginsAtStepZeroFromAReleaseOfWeights) {
  train(config("run"), tiny_data(), nullptr);
  const CheckpointReader trained(checkpoint("run", 20));
  CheckpointWriter writer(dir_ / "weights", kRelease);
  test::TensorCopies copies;
  for (const StoredTensor& tensor : trained.tensors())
    if (!tensor.name.starts_with(kOptimizerPrefix)) copies.put(writer, trained, tensor);
  writer.commit();
  PretrainConfig c = config("next");
  c.checkpoint.load = dir_ / "weights";
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
  EXPECT_LT(figures("next", "train")[0]["loss"].as_double(),
            figures("run", "train")[0]["loss"].as_double() - 0.3);
}

TEST_F(Loop, FinetunesFromTheParametersAlone) {
  PretrainConfig c = config("base");
  train(c, tiny_data(), nullptr);
  c.checkpoint.save = dir_ / "tuned";
  c.train.log_json = dir_ / "tuned.jsonl";
  c.checkpoint.finetune = true;
  c.train.lr = 3e-3;  // a changed schedule has no effect on the start
  c.train.iters = c.train.decay_iters = 3;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 3);
  const Json step = figures("tuned", "train")[0];
  EXPECT_EQ(step["iteration"].as_int(), 1);
  EXPECT_EQ(step["consumed_samples"].as_int(), 4);
  EXPECT_LT(step["loss"].as_double(), figures("base", "train")[0]["loss"].as_double() - 0.3);
}

TEST_F(Loop, ResumesWithoutMomentsWhenTold) {
  PretrainConfig c = config("run");
  c.train.exit_interval = 5;
  c.checkpoint.save_optim = false;
  train(c, tiny_data(), nullptr);
  c.train.exit_interval.reset();
  EXPECT_NE(complaint(c, ErrorKind::kData).find("--no-load-optim"), std::string::npos);
  c.checkpoint.load_optim = false;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
  EXPECT_EQ(figures("run", "train").size(), 20U);
}

TEST_F(Loop, StopsAtAMissingCheckpointWhenTold) {
  PretrainConfig c = config("none");
  c.checkpoint.exit_on_missing = true;
  complaint(c, ErrorKind::kNoInput);
  EXPECT_FALSE(fs::exists(dir_ / "none"));
}

}  // namespace
}  // namespace megalith
