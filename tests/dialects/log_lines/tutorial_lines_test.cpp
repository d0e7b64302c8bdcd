#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/log.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "libcore/train/log/run_observer.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

PretrainConfig tutorial() {
  PretrainConfig config;
  config.train.log_style = LogStyle::kDdpTutorial;
  return config;
}

ObservedRun observed(const PretrainConfig& config, Communicator& world, const Coord& at) {
  return {.config = config,
          .world = world,
          .at = at,
          .ranks_here = world.size(),
          .start = 0,
          .epoch_steps = 3,
          .parameters = 0,
          .memory = 0};
}

// Two data ranks with two stages each. The second stage knows the loss. Every rank must print the loss of its
// data rank's samples, although all ranks but the first are muted.
TEST(TutorialLines, ArePrintedByEveryRankForItsOwnSamples) {
  const PretrainConfig config = tutorial();
  test::LogLines log;
  run_thread_ranks(4, {}, [&](Communicator& world) {
    mute_this_thread(world.rank() > 0);
    const int data = world.rank() % 2, stage = world.rank() / 2;
    const auto lines = make_styled_lines(observed(config, world, {.data = data, .pipeline = stage}));
    lines->step({.figures = {.iteration = 5}, .own_loss = stage == 1 ? 9.125 + data : 0});
    lines->step_done(5);
    lines->step({.figures = {.iteration = 6}, .own_loss = stage == 1 ? 8.0 + data : 0});
    lines->step_done(6);
  });
  std::sort(log.lines.begin(), log.lines.end());
  EXPECT_EQ(log.lines, (std::vector<std::string>{
                           "=====",
                           "[GPU0] Epoch 2 (Batch 000001): Train loss 9.125",
                           "[GPU0] Epoch 2 (Batch 000002): Train loss 8.000",
                           "[GPU0] Epoch 2 finished, checkpoint: 000005",
                           "[GPU1] Epoch 2 (Batch 000001): Train loss 10.125",
                           "[GPU1] Epoch 2 (Batch 000002): Train loss 9.000",
                           "[GPU1] Epoch 2 finished, checkpoint: 000005",
                           "[GPU2] Epoch 2 (Batch 000001): Train loss 9.125",
                           "[GPU2] Epoch 2 (Batch 000002): Train loss 8.000",
                           "[GPU2] Epoch 2 finished, checkpoint: 000005",
                           "[GPU3] Epoch 2 (Batch 000001): Train loss 10.125",
                           "[GPU3] Epoch 2 (Batch 000002): Train loss 9.000",
                           "[GPU3] Epoch 2 finished, checkpoint: 000005",
                       }));
}

TEST(TutorialLines, CountStepsFromZeroAtEvaluations) {
  const PretrainConfig config = tutorial();
  const auto world = make_self_comm();
  const auto lines = make_styled_lines(observed(config, *world, {}));
  EXPECT_TRUE(lines->needs().own_loss && lines->needs().train_loss);
  EXPECT_EQ(logged_rate(LogStyle::kDdpTutorial), &StepFigures::rate);
  test::LogLines log;
  lines->evaluation({.iteration = 1, .loss = 9.14, .train_loss = 9.1312});
  lines->evaluation({.iteration = 0, .loss = 9.5});
  lines->evaluation({.set = "wiki", .iteration = 0, .loss = 9.25});
  lines->evaluation({.test = true, .iteration = 1, .loss = 9.14});
  EXPECT_EQ(log.lines, (std::vector<std::string>{"Epoch 1 (Step 000000): Train loss 9.131, Val loss 9.140",
                                                 "Epoch 1 (Step 000000): Val loss 9.500",
                                                 "Epoch 1 (Step 000000): Val loss (wiki) 9.250"}));
}

// The end of an epoch names the pair that was saved then, not an earlier one, and not another format's
// folder.
TEST(TutorialLines, NameTheNumberOfThePair) {
  const PretrainConfig config = tutorial();
  const auto world = make_self_comm();
  const auto lines = make_styled_lines(observed(config, *world, {}));
  test::LogLines log;
  lines->saved({1, "s/model_000000.pth", 0});
  lines->step_done(1);
  lines->saved({3, "s/model_000001.pth", 1});
  lines->step_done(3);
  lines->step_done(6);
  lines->saved({9, "s/iter_0000009"});
  lines->step_done(9);
  EXPECT_EQ(log.lines, (std::vector<std::string>{"=====", "[GPU0] Epoch 1 finished, checkpoint: 000001",
                                                 "=====", "[GPU0] Epoch 2 finished, checkpoint: 000005",
                                                 "=====", "[GPU0] Epoch 3 finished, checkpoint: 000008"}));
}

}  // namespace
}  // namespace megalith
