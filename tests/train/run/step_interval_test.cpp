#include "libcore/train/run/step_interval.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

std::vector<int64_t> due_steps(const StepInterval& interval, int64_t steps) {
  std::vector<int64_t> found;
  for (int64_t iteration = 0; iteration <= steps; ++iteration)
    if (interval.due_at(iteration)) found.push_back(iteration);
  return found;
}

CheckpointConfig saves(CheckpointFormat format, std::optional<int64_t> interval) {
  CheckpointConfig config;
  config.format = format;
  config.save_interval = interval;
  return config;
}

const StepNumbering kTutorial{.first_due = 1, .epoch_ends = true};

TEST(StepInterval, IsDueAtItsMultiples) {
  EXPECT_EQ(due_steps(evaluation_interval(4, {}), 9), (std::vector<int64_t>{0, 4, 8}));
  EXPECT_EQ(due_steps(save_interval(saves(checkpoint_format("megalith"), 3), {}, 2), 7),
            (std::vector<int64_t>{0, 3, 6}));
  EXPECT_EQ(due_steps(StepInterval{}, 9), (std::vector<int64_t>{}));
}

// As in the PyTorch DDP tutorial: `if global_step % interval == 0` with steps 0, 1, 2, …, and a pair saved at
// the end of each epoch.
TEST(StepInterval, IsDueAfterTheFirstStepWhereStepsAreCountedFromZero) {
  EXPECT_EQ(due_steps(evaluation_interval(4, kTutorial), 9), (std::vector<int64_t>{1, 5, 9}));
  const CheckpointConfig pairs = saves(checkpoint_format("pth"), 4),
                         ours = saves(checkpoint_format("torch"), 4);
  EXPECT_EQ(due_steps(save_interval(pairs, {}, 3), 9), (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(due_steps(save_interval(ours, kTutorial, 3), 9), (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(due_steps(save_interval(pairs, kTutorial, 3), 9), (std::vector<int64_t>{0, 1, 3, 5, 6, 9}));
  EXPECT_EQ(due_steps(save_interval(saves(checkpoint_format("pth"), {}), kTutorial, 3), 9),
            (std::vector<int64_t>{0, 3, 6, 9}));
}

}  // namespace
}  // namespace megalith
