#include <string>

#include <gtest/gtest.h>

#include "libcore/parallel/communicator.h"
#include "libcore/train/log/run_observer.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

/// Removes the beginning that Paddle's logger writes, "[2026-11-22 10:00:00,123] [    INFO] - ", from a line.
std::string after_head(const std::string& line) {
  const std::string mark = "] [    INFO] - ";
  const size_t at = line.find(mark);
  EXPECT_EQ(at, 24U) << line;
  return at == line.npos ? line : line.substr(at + mark.size());
}

// The names and their order must be those of PaddleNLP's trainer.log(). The figures were computed by hand.
TEST(PaddleLines, GiveMeansAndRatesOfTheInterval) {
  PretrainConfig config;
  config.train.log_style = LogStyle::kPaddle;
  config.train.log_interval = 2;
  config.train.global_batch = 16;
  const auto world = make_self_comm();
  const auto lines = make_styled_lines({.config = config,
                                        .world = *world,
                                        .at = {},
                                        .ranks_here = 1,
                                        .start = 0,
                                        .epoch_steps = 1000,
                                        .parameters = 0,
                                        .memory = 0});
  ASSERT_NE(lines, nullptr);
  EXPECT_EQ(logged_rate(config.train.log_style), &StepFigures::next_rate);
  test::LogLines log;
  lines->step({.figures = {.iteration = 19, .loss = 9.25, .seconds = 1.5, .samples = 12}});
  lines->step({.figures = {.iteration = 20, .loss = 9, .next_rate = 1e-5, .seconds = 0.5, .samples = 16}});
  lines->evaluation({.iteration = 20, .loss = 2, .batches = 5, .samples = 80, .seconds = 2.5});
  lines->evaluation({.test = true, .iteration = 20, .loss = 2, .batches = 5, .samples = 80, .seconds = 2.5});
  lines->evaluation({.set = "wiki", .iteration = 20, .loss = 2, .batches = 5, .samples = 75, .seconds = 2.5});
  ASSERT_EQ(log.lines.size(), 3U);
  EXPECT_EQ(after_head(log.lines[0]),
            "loss: 9.12500000, learning_rate: 1e-05, global_step: 20, interval_runtime: 2.0000, "
            "interval_samples_per_second: 14.0000, interval_steps_per_second: 1.0000, epoch: 0.0200");
  EXPECT_EQ(
      after_head(log.lines[1]),
      "eval_loss: 2.00000000, eval_ppl: 7.3891, eval_runtime: 2.5000, eval_samples_per_second: 32.0000, "
      "eval_steps_per_second: 2.0000, epoch: 0.0200");
  EXPECT_EQ(after_head(log.lines[2]),
            "eval_wiki_loss: 2.00000000, eval_wiki_ppl: 7.3891, eval_wiki_runtime: 2.5000, "
            "eval_wiki_samples_per_second: 30.0000, eval_wiki_steps_per_second: 2.0000, epoch: 0.0200");
}

}  // namespace
}  // namespace megalith
