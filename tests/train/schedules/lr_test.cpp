#include "libcore/train/schedules/lr.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string complaint(const Json& scheduler) {
  try {
    LrSchedule::from_json(scheduler, "here");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return "accepted";
}

template <class Style>
Style style_of(const std::string& word) {
  for (const auto& [name, value] : enum_names(Style{}))
    if (word == name) return value;
  fail(ErrorKind::kInternal, "no such style: ", word);
}

/// Sets the style of a golden: cosine, or WSD:cosine:300.
void set_style(LrSchedule& schedule, const std::string& words) {
  const std::vector<std::string> parts = split(words, ':');
  schedule.decay = style_of<LrDecay>(parts[0]);
  if (parts.size() < 3) return;
  schedule.wsd_decay = style_of<WsdDecay>(parts[1]);
  schedule.wsd = *parse_int(parts[2]);
}

// The tolerance, 2 ulp: Megatron computes in Python doubles with the same libm, but evaluates max * done /
// warmup in another order.
constexpr double kTwoUlp = 4.5e-16;

TEST(LrSchedule, EqualsMegatronsScheduler) {
  std::ifstream golden(test::test_data("train/goldens/lr.txt"));
  int cases = 0;
  for (std::string line; std::getline(golden, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream in(line);
    std::string style, colon, hex;
    LrSchedule schedule;
    int64_t samples = 0;
    in >> style >> schedule.max >> schedule.min >> schedule.warmup >> schedule.decay_end >> samples >>
        colon >> hex;
    set_style(schedule, style);
    const double want = std::strtod(hex.c_str(), nullptr);
    EXPECT_NEAR(schedule.at(samples), want, kTwoUlp * std::fabs(want) + 1e-19) << line;
    ++cases;
  }
  EXPECT_EQ(cases, 223);
}

TrainConfig config(int64_t iters, int batch) {
  TrainConfig c;
  c.iters = iters;
  c.global_batch = batch;
  c.lr = 1e-3;
  c.min_lr = 1e-4;
  return c;
}

TEST(MakeLrSchedule, CountsInSamples) {
  TrainConfig c = config(100, 16);
  c.warmup_iters = 10;
  const LrSchedule schedule = make_lr_schedule(c);
  EXPECT_EQ(schedule.warmup, 160);
  EXPECT_EQ(schedule.decay_end, 1600);
  EXPECT_EQ(schedule.at(0), 0);
  EXPECT_DOUBLE_EQ(schedule.at(80), 5e-4);
  EXPECT_DOUBLE_EQ(schedule.at(1600), 1e-4);
}

TEST(MakeLrSchedule, FractionOfTheDecayNeedNotBeWhole) {
  TrainConfig c = config(100, 1);
  c.decay_iters = 50;
  c.warmup_fraction = 0.05;
  EXPECT_DOUBLE_EQ(make_lr_schedule(c).warmup, 2.5);
}

TEST(LrSchedule, GoesFromAWarmUpAsLongAsTheDecayToTheMinimum) {
  const LrSchedule schedule{.max = 1, .min = 0.25, .decay = LrDecay::kCosine, .warmup = 10, .decay_end = 10};
  EXPECT_EQ(schedule.at(10), 1);
  EXPECT_EQ(schedule.at(11), 0.25);
}

// Steps 0 to 4 of a run of 5 steps with the options of transformers' get_linear_schedule_with_warmup(20, 5):
// lr * step / 20.
TEST(MakeLrSchedule, RisesToTheEndOfARunThatIsShorterThanTheWarmUp) {
  TrainConfig c = config(5, 2);
  c.warmup_iters = 20;
  c.decay = LrDecay::kLinear;
  const LrSchedule schedule = make_lr_schedule(c);
  for (int step = 0; step < 5; ++step) EXPECT_DOUBLE_EQ(schedule.at(2 * step), 1e-3 * step / 20);
}

// The warm-up of the DDP tutorial: initial_lr + step * (peak_lr - initial_lr) / warmup_steps.
TEST(LrSchedule, WarmsUpFromItsFirstRate) {
  const LrSchedule schedule{
      .max = 6e-4, .min = 1e-6, .decay = LrDecay::kCosine, .first = 3e-5, .warmup = 10, .decay_end = 100};
  EXPECT_DOUBLE_EQ(schedule.at(0), 3e-5);
  EXPECT_DOUBLE_EQ(schedule.at(1), 3e-5 + 5.7e-5);
  EXPECT_DOUBLE_EQ(schedule.at(10), 6e-4);
  EXPECT_EQ(LrSchedule::from_json(schedule.to_json(), "x").first, 3e-5);
}

// Megatron's checkpoints do not hold the length of the annealing phase.
TEST(LrSchedule, SavesTheAnnealingPhase) {
  const LrSchedule schedule{
      .max = 1, .decay = LrDecay::kWsd, .decay_end = 100, .wsd = 20, .wsd_decay = WsdDecay::kMinusSqrt};
  const LrSchedule read = LrSchedule::from_json(schedule.to_json(), "x");
  EXPECT_EQ(read.wsd, 20);
  EXPECT_EQ(read.wsd_decay, WsdDecay::kMinusSqrt);
  const Json megatrons = Json::parse(
      R"({"max_lr": 1, "min_lr": 0, "lr_decay_style": "WSD", "lr_warmup_steps": 0, "lr_decay_steps": 100})",
      "x");
  EXPECT_EQ(LrSchedule::from_json(megatrons, "x").wsd, 0);
  Json odd = schedule.to_json();
  odd.set("lr_wsd_decay_style", "steep");
  EXPECT_EQ(complaint(odd),
            "here: lr_wsd_decay_style \"steep\" is not one of exponential, linear, cosine, minus_sqrt");
}

TEST(MakeLrSchedule, CountsTheAnnealingPhaseInSamples) {
  TrainConfig c = config(100, 16);
  c.decay = LrDecay::kWsd;
  c.wsd_iters = 10;
  EXPECT_EQ(make_lr_schedule(c).wsd, 160);
  EXPECT_EQ(make_lr_schedule(c).at(90 * 16), 1e-3);
  c.decay = LrDecay::kLinear;
  EXPECT_EQ(make_lr_schedule(c).wsd, 0);
}

TEST(LrSchedule, NamesTheFileAndWhatIsMissing) {
  const Json whole = LrSchedule{.max = 6e-4, .decay_end = 100}.to_json();
  for (const auto& [key, kept] : whole.as_object()) {
    Json lacks = Json::object(), other = whole;
    for (const auto& [name, value] : whole.as_object())
      if (name != key) lacks.set(name, value);
    other.set(key, Json::array());
    if (key == "lr_warmup_init")  // may be missing: older checkpoints of Megatron lack it
      EXPECT_NO_THROW(LrSchedule::from_json(lacks, "here"));
    else
      EXPECT_EQ(complaint(lacks).find("here: has no \"" + key + "\", wanted a "), 0U) << complaint(lacks);
    EXPECT_EQ(complaint(other).find("here: has for \"" + key + "\" [], wanted a "), 0U) << complaint(other);
    EXPECT_NE(complaint(other).find("--override-opt_param-scheduler"), std::string::npos);
  }
}

}  // namespace
}  // namespace megalith
