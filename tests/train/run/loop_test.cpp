#include "libcore/train/run/loop.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/train/run/pretrain.h"
#include "tests/support/emulated_cuda.h"
#include "tests/train/run/loop_fixture.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Loop;
using test::tiny_config;
using test::tiny_data;
using test::tiny_sample;

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
  log_.lines.clear();
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

// A GPU has done the step before when the samples of the next one, the fourth, are found to be bad.
TEST_F(Loop, LogsTheStepsBeforeOneWhoseSamplesCannotBeRead) {
  const test::OwnEmulatedGpus gpus;
  PretrainConfig c = config("run");
  c.train.device = "cuda";
  c.train.log_interval = 1;
  c.train.eval_iters = 0;
  DataSets data = tiny_data();
  data.train.read = [](int64_t index, const SampleView& out) {
    if (index == 13) fail(ErrorKind::kData, "sample 13 is bad");
    tiny_sample(index, out);
  };
  EXPECT_EQ(complaint(c, ErrorKind::kData, data), "sample 13 is bad");
  EXPECT_TRUE(logged("the result of a step is read after the next one has begun"));
  EXPECT_TRUE(logged(" iteration        3/      20 | consumed samples:           12 | "));
  EXPECT_FALSE(logged(" iteration        4/"));
  EXPECT_EQ(figures("run", "train").size(), 3U);
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

TEST_F(Loop, EvaluatesAloneWhenToldTo) {
  PretrainConfig c = config("run");
  train(c, tiny_data(), nullptr);
  const auto before = figures("run", "test").back()["loss"].dump();
  c.train.eval_only = true;
  c.train.lr = 0.5;  // must have no effect
  c.checkpoint.save = dir_ / "nothing-to-save";
  log_.lines.clear();
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
  for (const std::string& line : log_.lines) warnings += line.starts_with("warning: ");
  EXPECT_EQ(warnings, 1);
  EXPECT_TRUE(logged("leaves no validation data: that evaluation is left out"));
  EXPECT_EQ(figures("run", "valid").size(), 0U);
  EXPECT_EQ(figures("run", "test").size(), 1U);
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

TEST(LogWorld, NamesTheKernelsOfACpu) {
  const test::Variable isa("MEGALITH_ISA", "generic"), gpus("CUDA_VISIBLE_DEVICES", "");
  PretrainConfig config = test::tiny_config();
  config.train.threads = 2;
  const test::LogLines log;
  log_world(config, nullptr);
  ASSERT_FALSE(log.lines.empty());
  EXPECT_TRUE(log.lines.front().starts_with("device: cpu, 2 threads")) << log.lines.front();
  EXPECT_TRUE(log.lines.front().ends_with(", kernels for generic")) << log.lines.front();
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

TEST_F(Loop, RefusesMoreStepsThanTheDataHold) {
  DataSets data = tiny_data();
  data.train.size = 79;
  const std::string what = complaint(config("run"), ErrorKind::kUsage, data);
  EXPECT_NE(what.find("needs 80 training samples, but the data sets have 79"), std::string::npos) << what;
}

TEST_F(Loop, RefusesTheEndsOfEpochsThatHaveNoLength) {
  PretrainConfig c = config("run");
  c.train.epoch_ends = true;
  EXPECT_NE(complaint(c, ErrorKind::kUsage).find("--at-epoch-ends: these data have no epochs"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(c.checkpoint.save));
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
