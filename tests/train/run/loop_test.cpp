#include "libcore/train/run/loop.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/train/run/pretrain.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/log_lines.h"
#include "tests/support/tensor_copies.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using test::tiny_config;
using test::tiny_data;
using test::tiny_sample;

/// A folder, configurations that keep all their state in it, and the captured log.
class Loop : public testing::Test {
 protected:
  Loop() {
    before_ = set_log_sink([this](const std::string& line) { log_.push_back(line); });
  }
  ~Loop() override { set_log_sink(before_); }

  /// tiny_config() with --save and --load in `folder` and the figures next to that folder.
  PretrainConfig config(const std::string& folder) const {
    PretrainConfig c = tiny_config();
    c.checkpoint.save = c.checkpoint.load = dir_ / folder;
    c.train.log_json = dir_ / (folder + ".jsonl");
    return c;
  }
  std::string complaint(const PretrainConfig& c, ErrorKind kind, const DataSets& data = tiny_data()) {
    try {
      train(c, data, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "the run went through";
    return "";
  }
  bool logged(const std::string& part) const {
    for (const std::string& line : log_)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  std::vector<Json> figures(const std::string& folder, const std::string& type) const {
    return test::log_lines(dir_ / (folder + ".jsonl"), type);
  }
  fs::path checkpoint(const std::string& folder, int64_t iteration) const {
    return dir_.path() / folder / iteration_folder(iteration);
  }
  /// Compares the bytes of every tensor and the state, but not the options, of the checkpoints of `a` and
  /// `b`.
  void expect_same_checkpoint(const std::string& a, const std::string& b, int64_t iteration) const {
    const CheckpointReader left(checkpoint(a, iteration)), right(checkpoint(b, iteration));
    EXPECT_EQ(left.text(kStateFile), right.text(kStateFile));
    ASSERT_EQ(left.index().tensors.size(), right.index().tensors.size());
    EXPECT_GT(left.index().tensors.size(), 30U);
    for (const IndexedTensor& tensor : left.index().tensors) {
      ASSERT_NE(right.index().find(tensor.name), nullptr) << tensor.name;
      std::vector<float> x(static_cast<size_t>(tensor.shape.elements())), y = x;
      left.read(Box::whole(tensor.name, tensor.shape), View{x.data(), DType::kF32, tensor.shape});
      right.read(Box::whole(tensor.name, tensor.shape), View{y.data(), DType::kF32, tensor.shape});
      EXPECT_EQ(x, y) << tensor.name;
    }
  }
  /// The figures that a step computes, as text, without times.
  static std::vector<std::string> computed(const std::vector<Json>& lines) {
    std::vector<std::string> out;
    for (const Json& line : lines) {
      std::string text;
      for (const char* name : {"iteration", "consumed_samples", "loss", "lr", "grad_norm", "ppl"})
        if (const Json* value = line.find(name)) text += value->dump() + " ";
      out.push_back(text);
    }
    return out;
  }
  void expect_same_figures(const std::string& a, const std::string& b) const {
    for (const char* type : {"train", "valid", "test"})
      EXPECT_EQ(computed(figures(a, type)), computed(figures(b, type))) << type;
  }

  /// tiny_data(), of which reading this validation sample sends the run a signal.
  DataSets data_with_signal_at(int64_t sample) {
    DataSets data = tiny_data();
    last_validated_ = 0;
    data.valid.read = [this, sample, samples = data.valid.read](int64_t index, const SampleView& out) {
      if (index == sample) std::raise(SIGTERM);
      last_validated_ = std::max<int64_t>(last_validated_, index);
      samples.read(index, out);
    };
    return data;
  }

  TempDir dir_;
  std::vector<std::string> log_;
  std::atomic<int64_t> last_validated_ = 0;  // the last sample of data_with_signal_at() that was read
  LogSink before_;
};

TEST_F(Loop, SaysThatTheWarmUpOutlastsTheRun) {
  PretrainConfig c = tiny_config();
  c.train.iters = 3;
  c.train.decay_iters = 3;
  c.train.warmup_iters = 3;
  c.train.eval_iters = 0;
  const char* const message =
      "the warm-up of 3 steps outlasts the run's 3: the learning rate does not reach 0.01";
  train(c, tiny_data(), nullptr);
  EXPECT_TRUE(logged(message));
  log_.clear();
  c.train.warmup_iters = 2;
  train(c, tiny_data(), nullptr);
  EXPECT_FALSE(logged("outlasts"));
}

TEST_F(Loop, RunsToTheEndAndSaysSo) {
  const PretrainResult result = train(config("run"), tiny_data(), nullptr);
  EXPECT_EQ(result.iteration, 20);
  EXPECT_TRUE(result.stopped_by.empty());
  EXPECT_TRUE(result.saved);
  EXPECT_TRUE(logged("starting from random values"));
  EXPECT_TRUE(logged(" number of parameters on (tensor, pipeline) model parallel rank (0, 0): 7328"));
  EXPECT_TRUE(logged("memory known before the run: weights "));
  EXPECT_TRUE(logged(" iteration        5/      20 | consumed samples:           20 | "));
  EXPECT_TRUE(logged(" iteration       20/      20 | consumed samples:           80 | "));
  EXPECT_TRUE(logged(" validation loss at iteration 20 | lm loss value: "));
  EXPECT_TRUE(logged(" validation loss at iteration 20 on validation set | lm loss value: "));
  EXPECT_TRUE(logged(" validation loss at iteration 20 on test set | lm loss value: "));
  EXPECT_TRUE(logged("saving checkpoint at iteration      20 to "));
  EXPECT_TRUE(logged("  successfully saved checkpoint from iteration      20 to "));
  EXPECT_EQ(trim(read_file(dir_ / "run/latest_checkpointed_iteration.txt")), "20");

  const std::vector<Json> steps = figures("run", "train");
  ASSERT_EQ(steps.size(), 20U);
  EXPECT_EQ(steps[1]["lr"].as_double(), 1e-2);  // the warm-up ends after two steps; the first has rate 0
  EXPECT_EQ(steps[19]["lr"].as_double(), 1e-3);
  EXPECT_LT(steps[19]["loss"].as_double(), steps[0]["loss"].as_double());
  EXPECT_EQ(figures("run", "valid").size(), 5U);
  EXPECT_EQ(figures("run", "test").size(), 1U);
  EXPECT_EQ(figures("run", "end")[0]["reason"].as_string(), "done");
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

// While the loss scale can fall, overflows do not count as failures. When it has reached its minimum, three
// skipped steps in a row end the run.
TEST_F(Loop, StopsInFp16OnlyWhenTheLossScaleCannotFall) {
  PretrainConfig c = config("run");
  c.train.fp16 = true;
  c.train.initial_loss_scale = 0x1p30;
  c.train.min_loss_scale = 0x1p27;
  c.train.hysteresis = 1;
  c.train.eval_iters = 0;
  const std::string what = complaint(c, ErrorKind::kData);
  EXPECT_NE(what.find("iterations 3 to 5 were not finite"), std::string::npos)
      << what;  // steps 1 to 3 lower the scale from 2^30 to 2^27
  EXPECT_FALSE(logged("warning: iteration 2 is skipped"));
  EXPECT_TRUE(logged("warning: iteration 3 is skipped"));
}

// The losses are finite, so a fixed scale that overflows is too large.
TEST_F(Loop, AdvisesAnotherLossScaleWhereAFixedOneOverflows) {
  PretrainConfig c = config("run");
  c.train.fp16 = true;
  c.train.loss_scale = 1e30;
  c.train.eval_iters = 0;
  const std::string what = complaint(c, ErrorKind::kData);
  EXPECT_NE(what.find("lower --loss-scale 1e+30, or leave it out for a dynamic one"), std::string::npos)
      << what;
  EXPECT_EQ(what.find("--lr"), std::string::npos) << what;
}

// The expected steps are Megatron's (update_train_iters, run in Python): a ramp from 4 by 4 to 12 over 40 of
// 100 samples has five steps of 4, three of 8 and four of 12.
TEST_F(Loop, GrowsItsBatchAndResumesBitForBit) {
  for (const char* name : {"whole", "parts"}) {
    PretrainConfig c = config(name);
    c.train.global_batch = 12;
    c.train.iters.reset();
    c.train.decay_iters.reset();
    c.train.samples = 100;
    c.train.rampup = {"4", "4", "40"};
    c.train.warmup_iters = 0;
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

TEST_F(Loop, EvaluatesAloneWhenToldTo) {
  PretrainConfig c = config("run");
  train(c, tiny_data(), nullptr);
  const auto before = figures("run", "test").back()["loss"].dump();
  c.train.eval_only = true;
  c.train.lr = 0.5;  // must have no effect
  c.checkpoint.save = dir_ / "nothing-to-save";
  log_.clear();
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
  EXPECT_FALSE(std::filesystem::exists(c.checkpoint.save));
  EXPECT_TRUE(logged(" validation loss at iteration 20 on validation set"));
  EXPECT_FALSE(logged(" iteration       20/"));
  EXPECT_EQ(figures("run", "train").size(), 20U);
  EXPECT_EQ(figures("run", "test").back()["loss"].dump(), before);
}

TEST_F(Loop, SaysThatASplitLeavesNoTrainingData) {
  DataSets data = tiny_data();
  data.train = {};
  PretrainConfig c = config("run");
  c.data.split = "0,1,0";
  const std::string what = complaint(c, ErrorKind::kUsage, data);
  EXPECT_EQ(
      what,
      "--split \"0,1,0\" leaves no training data; give --split a larger share for it, the first number");
}

TEST_F(Loop, LeavesOutAnEvaluationWithoutDataWithOneWarning) {
  DataSets data = tiny_data();
  data.valid = {};
  train(config("run"), data, nullptr);
  int warnings = 0;
  for (const std::string& line : log_) warnings += line.starts_with("warning: ");
  EXPECT_EQ(warnings, 1);
  EXPECT_TRUE(logged("leaves no validation data: that evaluation is left out"));
  EXPECT_EQ(figures("run", "valid").size(), 0U);
  EXPECT_EQ(figures("run", "test").size(), 1U);
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

// The evaluations after steps 5, 10, 15 and 20 read eight samples each; that at the end reads the next eight.
TEST_F(Loop, EndsAnEvaluationAtASignalAndRepeatsItWhenResumed) {
  train(config("whole"), tiny_data(), nullptr);
  for (const int ranks : {1, 2})
    for (const auto& [sample, iteration, before] : {std::tuple{9, 10, 1U}, std::tuple{33, 20, 4U}}) {
      const std::string name = concat("cut", ranks, sample);
      PretrainConfig c = config(name);
      c.parallel.data = ranks;
      c.parallel.finish();
      const PretrainResult stopped = train(c, data_with_signal_at(sample), nullptr);
      EXPECT_EQ(stopped.iteration, iteration);
      EXPECT_EQ(stopped.stopped_by, "SIGTERM");
      EXPECT_TRUE(stopped.saved);
      EXPECT_LT(last_validated_, sample / 4 * 4 + 4) << "the batch of the signal is the last";
      EXPECT_EQ(figures(name, "valid").size(), before);
      EXPECT_TRUE(logged("stopped before its end, no figures"));
      log_.clear();
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
  EXPECT_EQ(train(c, data_with_signal_at(9), nullptr).iteration, 10);
  EXPECT_EQ(figures("run", "valid").size(), 1U);
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 10);
  EXPECT_EQ(figures("run", "valid").size(), 2U);
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 20);
  EXPECT_EQ(figures("run", "valid").size(), 4U);
}

// A tuning by preferences first computes the reference of all its examples. Any rank may obey the signal
// first.
TEST_F(Loop, EndsTheReferenceAtASignal) {
  for (const int ranks : {1, 2}) {
    PretrainConfig c = config("run");
    c.parallel.data = ranks;
    c.parallel.finish();
    std::atomic<int> reads{0};
    const Tuning tuning{.preferences =
                            Tuning::Preferences{.options = {},
                                                .examples = SampleSource([&](int64_t i, const auto& out) {
                                                  if (++reads == 9) std::raise(SIGTERM);
                                                  tiny_sample(i, out);
                                                }),
                                                .count = 1000}};
    try {
      train(c, tiny_data(), nullptr, StopSignal(), {}, &tuning);
      ADD_FAILURE() << ranks << " ranks were not stopped";
    } catch (const Stopped& stopped) {
      EXPECT_EQ(stopped.name, "SIGTERM") << ranks;
    }
    EXPECT_LT(reads, 9 + 2 * 4) << ranks;  // of the step in which the signal came, and of the next
    EXPECT_FALSE(fs::exists(checkpoint("run", 20)));
  }
}

TEST_F(Loop, SavesAtItsIntervalAndAtTheEnd) {
  PretrainConfig c = config("run");
  c.checkpoint.save_interval = 8;
  train(c, tiny_data(), nullptr);
  EXPECT_TRUE(fs::exists(checkpoint("run", 8)) && fs::exists(checkpoint("run", 16)) &&
              fs::exists(checkpoint("run", 20)));
  EXPECT_EQ(figures("run", "save").size(), 3U);
}

TEST_F(Loop, EndsWhenItsTimeIsUp) {
  PretrainConfig c = config("run");
  c.train.exit_minutes = 0;
  const PretrainResult result = train(c, tiny_data(), nullptr);
  EXPECT_EQ(result.iteration, 1);
  EXPECT_TRUE(result.saved);
  EXPECT_TRUE(result.stopped_by.empty());
  EXPECT_EQ(figures("run", "end")[0]["reason"].as_string(), "exit-duration-in-mins");
}

TEST_F(Loop, EvaluatesWithoutASecondStepWhenNothingIsLeft) {
  train(config("run"), tiny_data(), nullptr);
  log_.clear();
  EXPECT_EQ(train(config("run"), tiny_data(), nullptr).iteration, 20);
  EXPECT_TRUE(logged("on test set"));
  EXPECT_FALSE(logged("saving checkpoint"));
  EXPECT_EQ(figures("run", "train").size(), 20U);
}

TEST_F(Loop, ReadsOtherValidationSamplesEachTime) {
  std::vector<int64_t> asked;
  DataSets data = tiny_data();
  data.valid.read = [&](int64_t index, const SampleView& out) {
    asked.push_back(index);
    tiny_sample(index, out);
  };
  data.valid.size = 20;  // 5 evaluations of 2 batches of 4 read 40 samples, so they start over after 20
  train(config("run"), data, nullptr);
  ASSERT_EQ(asked.size(), 40U);
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i], static_cast<int64_t>(i % 20));
}

TEST_F(Loop, SkipsStepsThatAreNotFiniteAndStopsWhenTheyContinue) {
  PretrainConfig c = config("run");
  c.train.eval_iters = 0;
  c.checkpoint.save_interval = 5;
  c.train.lr = 1e30;  // weights stay finite, but their squares overflow
  c.train.clip_grad = 0;
  const std::string what = complaint(c, ErrorKind::kData);
  EXPECT_NE(what.find("were not finite"), std::string::npos) << what;
  EXPECT_NE(what.find("iterations 3 to 5"), std::string::npos)
      << what;  // the first step has rate 0; the second ruins the model, so steps from 3 on are skipped
  EXPECT_NE(what.find("samples 8 to 19"), std::string::npos) << what;
  EXPECT_TRUE(logged("warning: iteration 3 is skipped: loss "));
  EXPECT_FALSE(fs::exists(checkpoint("run", 5)));
  EXPECT_TRUE(figures("run", "train")[3]["skipped"].as_bool());
}

TEST(DeviceLine, NamesTheDeviceAndAGpuThatIsNotUsed) {
  EXPECT_EQ(device_line("cpu", 8, 1, {}), "device: cpu, 8 threads");
  EXPECT_EQ(device_line("cpu", 1, 4, {}), "device: cpu, 1 thread a rank");
  EXPECT_EQ(device_line("cpu", 8, 1, {"NVIDIA H100 80GB HBM3", "NVIDIA A100"}),
            "device: cpu, 8 threads (NVIDIA H100 80GB HBM3 is here: --device cuda)");
  EXPECT_EQ(device_line("cuda", 8, 1, {"NVIDIA H100"}), "device: cuda, 8 threads");
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
  const test::LogLines log;
  EXPECT_EQ(train(c, tiny_data(), nullptr).iteration, 7);
  EXPECT_NE(std::find(log.lines.begin(), log.lines.end(),
                      "7 of 7 steps are done; to train longer, raise --train-iters"),
            log.lines.end());
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
    log_.clear();
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

TEST_F(Loop, FindsOutAtOnceThatNothingCanBeSaved) {
  write_file(dir_ / "file", "");
  PretrainConfig c = config("run");
  c.checkpoint.load.clear();
  c.checkpoint.save = dir_ / "file/run";
  c.train.log_json.clear();
  EXPECT_NE(complaint(c, ErrorKind::kIo).find("file/run"), std::string::npos);
  EXPECT_FALSE(logged("training ..."));
}

TEST_F(Loop, KeepsTheLossesOfEveryStepInItsCheckpoint) {
  train(config("run"), tiny_data(), nullptr);
  const CheckpointReader saved(checkpoint("run", 20));
  const Json kept = saved.json(kLossesFile);
  const Json::Array& losses = kept["train"].as_array();
  const auto lines = figures("run", "train");
  ASSERT_EQ(losses.size(), 20U);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(losses[i].as_array()[0].as_int(), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(losses[i].as_array()[1].as_double(), lines[i]["loss"].as_double());
  }
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

TEST_F(Loop, RefusesMoreStepsThanTheDataHold) {
  DataSets data = tiny_data();
  data.train.size = 79;
  const std::string what = complaint(config("run"), ErrorKind::kUsage, data);
  EXPECT_NE(what.find("needs 80 training samples, but the data sets have 79"), std::string::npos) << what;
}

TEST_F(Loop, RefusesAModelThatMemoryCannotHold) {
  PretrainConfig c = tiny_config();
  c.model = {};
  c.model.layers = 400;
  c.model.hidden = 65536;
  c.model.heads = 512;
  c.model.seq_length = 128;
  c.model.vocab_size = test::kTinyVocab;
  c.model.finish();
  const std::string what = complaint(c, ErrorKind::kUsage);
  EXPECT_NE(what.find("of memory (weights "), std::string::npos) << what;
  EXPECT_NE(what.find("this machine has "), std::string::npos) << what;
}

/// The letters a, b, … are the ids 0, 1, …; ids after that of z stand for a, b, … again.
class LetterTokenizer : public Tokenizer {
 public:
  int vocab_size() const override { return test::kTinyVocab; }
  int eod() const override { return test::kTinyVocab - 1; }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    for (const char c : utf8) ids.push_back(c - 'a');
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) text += static_cast<char>('a' + id % 26);
    return text;
  }
  std::string name() const override { return "LetterTokenizer"; }
  std::string hash() const override { return "of a test"; }
};

/// Puts each letter on a line of its own.
class LineTokenizer final : public LetterTokenizer {
 public:
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const char letter : LetterTokenizer::decode(ids)) text += {letter, '\n'};
    return text;
  }
};

TEST_F(Loop, LogsTheLinesOfASampleBelowEachOther) {
  PretrainConfig c = config("run");
  c.train.sample_prompt = "abc";
  c.train.sample_tokens = 3;
  train(c, tiny_data(), std::make_unique<LineTokenizer>().get());
  const std::string text = figures("run", "sample").at(0)["text"].as_string();
  ASSERT_NE(text.find('\n'), std::string::npos);
  EXPECT_TRUE(logged("Generated Sample Text: " + join(split(text, '\n'), "\n  ")));
}

TEST_F(Loop, SamplesTextAtEachEvaluation) {
  PretrainConfig c = config("run");
  c.train.sample_prompt = "abc";
  c.train.sample_tokens = 4;
  c.train.tensorboard = dir_ / "tb";
  c.train.report = dir_ / "report.html";
  train(c, tiny_data(), std::make_unique<LetterTokenizer>().get());
  const std::vector<Json> samples = figures("run", "sample");
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[0]["prompt"].as_string(), "abc");
  EXPECT_TRUE(samples[0]["text"].as_string().starts_with("abc"));
  EXPECT_TRUE(logged("Generated Sample Text: abc"));
  EXPECT_FALSE(fs::is_empty(dir_ / "tb"));
  EXPECT_NE(read_file(dir_ / "report.html").find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace megalith
