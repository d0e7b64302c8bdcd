#include "libcore/config/train_config.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/options/cli.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

constexpr const char* kModel =
    "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 --lr 1e-3 ";

/// The configuration for these options, beside those of a model of samples of 32 tokens.
PretrainConfig given(const std::string& line) {
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  std::vector<std::string> words;
  for (const std::string& word : split(kModel + line, ' '))
    if (!word.empty()) words.push_back(word);
  // "0:4+640:8" stands for a schedule, which is one word with a blank in it.
  for (std::string& word : words) std::replace(word.begin(), word.end(), '+', ' ');
  EXPECT_FALSE(options.read(words));
  const test::LogLines log;
  options.check();
  return config;
}

void expect_refused(const std::string& line, const std::string& why) {
  try {
    given(line);
    ADD_FAILURE() << line << ": accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(TrainConfigWsd, NeedsTheLengthOfItsAnnealingPhase) {
  const std::string iters = "--train-iters 100 --lr-decay-style WSD ",
                    samples = "--train-samples 400 --lr-decay-style WSD ";
  const PretrainConfig steps = given(iters + "--lr-wsd-decay-iters 20 --lr-wsd-decay-style minus_sqrt");
  EXPECT_EQ(steps.train.wsd_in_samples(), 40);
  EXPECT_EQ(steps.train.wsd_decay, WsdDecay::kMinusSqrt);
  EXPECT_EQ(given(samples + "--lr-wsd-decay-samples 100").train.wsd_in_samples(), 100);
  expect_refused(iters, "--lr-wsd-decay-iters");
  expect_refused(samples, "--lr-wsd-decay-samples");
  expect_refused(iters + "--lr-wsd-decay-samples 5",
                 "--lr-wsd-decay-samples cannot be combined with --train-iters");
  expect_refused(samples + "--lr-wsd-decay-iters 5",
                 "--lr-wsd-decay-iters cannot be combined with --train-samples");
  expect_refused(iters + "--lr-wsd-decay-iters 91 --lr-warmup-iters 10",
                 "--lr-wsd-decay-iters 91 and the warm-up are longer than the whole schedule, 100 steps");
  given(iters + "--lr-wsd-decay-iters 90 --lr-warmup-iters 10");
  given("--eval-only --lr-decay-style WSD --lr-wsd-decay-iters 20 --load run");  // no step takes a rate
  expect_refused("--train-iters 100 --lr-wsd-decay-iters 5",
                 "--lr-wsd-decay-iters needs --lr-decay-style WSD");
  expect_refused("--train-iters 100 --lr-wsd-decay-style linear",
                 "--lr-wsd-decay-style needs --lr-decay-style WSD");
}

// Thresholds are tokens: 640 of them are 20 samples of 32.
TEST(TrainConfigBatchSchedule, CountsTokensAndSetsTheLengthOfTheRun) {
  const TrainConfig t = given("--train-samples 100 --step-batch-size-schedule 0:4+640:8+1920:16").train;
  EXPECT_EQ(t.batch_levels(), (std::vector<BatchLevel>{{0, 4}, {20, 8}, {60, 16}}));
  EXPECT_EQ(t.global_batch, 16);
  EXPECT_EQ(t.iters, 5 + 5 + 2);  // 5 steps of 4, 5 of 8, 2 of 16; 8 samples are left
  EXPECT_EQ(t.batch_at(19), 4);
  EXPECT_EQ(t.batch_at(20), 8);
  EXPECT_EQ(t.samples_of_steps(3, 12), 4 + 4 + 8);
  const std::string same = "--train-samples 100 --global-batch-size 16 --step-batch-size-schedule ";
  EXPECT_EQ(given(same + "0:4+640:8+1920:16").train.iters, 5 + 5 + 2);
}

TEST(TrainConfigBatchSchedule, ExcludesWhatElseSaysTheBatch) {
  const std::string line = "--train-samples 100 --step-batch-size-schedule 0:4+640:8 ";
  expect_refused(line + "--global-batch-size 4",
                 "--step-batch-size-schedule and --global-batch-size 4 contradict each other");
  expect_refused(line + "--gradient-accumulation-steps 3",
                 "--step-batch-size-schedule and --gradient-accumulation-steps 3 contradict each other");
  expect_refused(line + "--rampup-batch-size 4 4 40",
                 "--step-batch-size-schedule and --rampup-batch-size contradict each other");
  expect_refused(line + "--at-epoch-ends",
                 "epochs end within batches that grow (--step-batch-size-schedule)");
  expect_refused("--train-iters 10 --step-batch-size-schedule 0:4",
                 "--step-batch-size-schedule needs --train-samples N in place of --train-iters");
  expect_refused("--train-samples 100 --step-batch-size-schedule 0:4+9",
                 "--step-batch-size-schedule \"0:4 9\" holds \"9\"");
  expect_refused("--train-samples 100 --step-batch-size-schedule 0:3+640:8",
                 "--step-batch-size-schedule: 3 is not a multiple of --micro-batch-size 2");
  given("--train-samples 100 --step-batch-size-schedule 0:3+640:8 --load run");  // it may be past the 3
}

// Counted from zero, the saves of every third step come after the steps 1, 4, 7, …: all would be removed.
TEST(TrainConfigSaves, AreRetainedAtMultiplesOfTheirInterval) {
  const std::string line = "--train-iters 100 --save s --save-interval 3 --save-retain-interval ";
  EXPECT_EQ(given(line + "6").checkpoint.retain_interval, 6);
  expect_refused(line + "7", "--save-retain-interval 7 is not a multiple of --save-interval 3");
  expect_refused(line + "6 --keep-last 2",
                 "--save-retain-interval 6 and --keep-last 2 contradict each other");
  expect_refused(line + "6 --count-steps-from-zero",
                 "--save-retain-interval 6 and --count-steps-from-zero, which saves after other steps");
}

TEST(TrainConfigValidation, OfSeveralSetsNeedsThemAndTheirNames) {
  const std::string line = "--train-iters 10 --multiple-validation-sets ";
  expect_refused(line, "--multiple-validation-sets needs --full-validation");
  expect_refused(line + "--full-validation --data-path a",
                 "--multiple-validation-sets needs --valid-data-path or --per-split-data-args-path");
  expect_refused("--train-iters 10 --validation-set-names x",
                 "--validation-set-names x needs --multiple-validation-sets");
  expect_refused(
      line + "--full-validation --train-data-path a --valid-data-path b c --validation-set-names x x",
      "--validation-set-names: two sets have the name \"x\"");
  expect_refused("--train-iters 10 --full-validation --mock-data",
                 "--full-validation needs datasets of tokens");
  given(line + "--full-validation --train-data-path a --valid-data-path b c --validation-set-names x y");
}

}  // namespace
}  // namespace megalith
