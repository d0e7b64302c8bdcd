#include "libcore/train/run/step_interval.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

std::vector<int64_t> due_steps(const StepInterval& interval, int64_t steps) {
  std::vector<int64_t> found;
  for (int64_t iteration = 0; iteration <= steps; ++iteration)
    if (interval.due_at(iteration)) found.push_back(iteration);
  return found;
}

CheckpointConfig saves(std::optional<int64_t> interval) {
  CheckpointConfig config;
  config.save_interval = interval;
  return config;
}

TrainConfig evaluates(int64_t interval) {
  TrainConfig config;
  config.eval_interval = interval;
  return config;
}

TEST(StepInterval, IsDueAtItsMultiples) {
  const StepIntervals due = step_intervals(evaluates(4), saves(3), 2);
  EXPECT_EQ(due_steps(due.evaluation, 9), (std::vector<int64_t>{0, 4, 8}));
  EXPECT_EQ(due_steps(due.save, 7), (std::vector<int64_t>{0, 3, 6}));
  EXPECT_EQ(due_steps(step_intervals(evaluates(4), saves({}), 2).save, 9), (std::vector<int64_t>{}));
}

// As in the PyTorch DDP tutorial: `if global_step % interval == 0` with steps 0, 1, 2, …
TEST(StepInterval, IsDueAfterTheFirstStepWhereStepsAreCountedFromZero) {
  TrainConfig train = evaluates(4);
  train.from_zero = true;
  const StepIntervals due = step_intervals(train, saves(3), 2);
  EXPECT_EQ(due_steps(due.evaluation, 9), (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(due_steps(due.save, 9), (std::vector<int64_t>{1, 4, 7}));
}

TEST(StepInterval, IsAlsoDueAtTheEndsOfEpochsOfAKnownLength) {
  TrainConfig train = evaluates(4);
  train.epoch_ends = true;
  EXPECT_EQ(due_steps(step_intervals(train, saves({}), 3).evaluation, 9),
            (std::vector<int64_t>{0, 3, 4, 6, 8, 9}));
  EXPECT_EQ(due_steps(step_intervals(train, saves({}), 3).save, 9), (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_THROW(step_intervals(train, saves({}), 0), Error);
}

}  // namespace
}  // namespace megalith
