#include "libcore/train/run/run_progress.h"

#include <optional>

#include <gtest/gtest.h>

#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

class RunProgressTest : public ::testing::Test {
 protected:
  const PretrainConfig config_ = test::tiny_config();
  const DataSets data_ = test::tiny_data();
  RunProgress progress_{config_, data_.train.read};
};

TEST_F(RunProgressTest, CountsTheSamplesOfAnEvaluation) {
  progress_.add_validation(4.5);
  progress_.add_validation(4.25);
  EXPECT_EQ(progress_.state().consumed_valid, 16);  // 2 evaluations of 2 batches of 4
  EXPECT_EQ(progress_.losses().valid().at(0), 4.25);
}

// The DDP tutorial clips where global_step > warmup_steps; steps count from 0. The warm-up has 2 steps of 4
// samples.
TEST_F(RunProgressTest, WarmsUpToTheStepOfItsLength) {
  for (const int64_t step : {0, 1, 2, 3}) {
    StartPoint start{};
    start.state = TrainState{.iteration = step, .schedule_samples = 4 * step};
    progress_.resume(start);
    EXPECT_EQ(progress_.next().warming_up, step <= 2) << step;
  }
}

// A loss is the new best only if it is lower than the old one by more than the threshold.
TEST_F(RunProgressTest, NotesTheBestLoss) {
  EXPECT_TRUE(progress_.note_figure(4.0, 0.5));
  EXPECT_FALSE(progress_.note_figure(3.5, 0.5));
  EXPECT_FALSE(progress_.note_figure(5.0, 0.5));
  EXPECT_EQ(progress_.state().best_loss, 4.0);
  EXPECT_EQ(progress_.state().worse_evaluations, 2);
  EXPECT_TRUE(progress_.note_figure(3.25, 0.5));
  EXPECT_EQ(progress_.state().best_loss, 3.25);
  EXPECT_EQ(progress_.state().worse_evaluations, 0);
}

}  // namespace
}  // namespace megalith
