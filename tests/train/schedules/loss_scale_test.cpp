#include "libcore/train/schedules/loss_scale.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TrainConfig fp16(double first, double min_scale, int window, int hysteresis) {
  TrainConfig train;
  train.fp16 = true;
  train.initial_loss_scale = first;
  train.min_loss_scale = min_scale;
  train.loss_scale_window = window;
  train.hysteresis = hysteresis;
  return train;
}

/// The scale after each of `steps`: "x" is a step that overflowed, "." one that did not.
std::vector<double> scales(LossScale& scale, const std::string& steps) {
  std::vector<double> all;
  for (const char step : steps) {
    scale.update(step == 'x');
    all.push_back(scale.value());
  }
  return all;
}

// The expected scales follow DynamicGradScaler.update of megatron-core 0.12, executed by hand with backoff
// 0.5 and growth 2.
TEST(LossScale, FallsWhenPatienceIsSpentAndFromThenOnEachTime) {
  LossScale scale(fp16(64, 1, 4, 2));
  EXPECT_EQ(scale.value(), 64);
  // Good steps between overflows do not restore patience.
  EXPECT_EQ(scales(scale, "x..xx.x"), (std::vector<double>{64, 64, 64, 32, 16, 16, 8}));
}

TEST(LossScale, GrowsAfterAWindowOfGoodStepsWhichRestoresPatience) {
  LossScale scale(fp16(64, 1, 3, 2));
  EXPECT_EQ(scales(scale, "xx.."), (std::vector<double>{64, 32, 32, 32}));
  // The overflow resets the count of good steps.
  EXPECT_EQ(scales(scale, "x..."), (std::vector<double>{16, 16, 16, 32}));
  EXPECT_EQ(scales(scale, "xx...."), (std::vector<double>{32, 16, 16, 16, 32, 32}));
}

TEST(LossScale, StopsAtItsLeastValue) {
  LossScale scale(fp16(4, 3, 1000, 1));
  EXPECT_TRUE(scale.can_fall());
  EXPECT_EQ(scales(scale, "xxx"), (std::vector<double>{3, 3, 3}));
  EXPECT_FALSE(scale.can_fall());
}

TEST(LossScale, StaysWhereItIsFixedAndIsOneWithoutFp16) {
  TrainConfig train = fp16(64, 1, 2, 1);
  train.loss_scale = 1000;
  LossScale fixed(train);
  EXPECT_EQ(scales(fixed, "xx..."), (std::vector<double>(5, 1000)));
  EXPECT_FALSE(fixed.can_fall());
  train.loss_scale = 0;  // in Megatron, too, 0 means a dynamic scale
  EXPECT_EQ(LossScale(train).value(), 64);
  TrainConfig bf16;
  bf16.bf16 = true;
  EXPECT_EQ(LossScale(bf16).value(), 1);
  bf16.loss_scale = 8;  // Megatron, too, applies --loss-scale without --fp16
  EXPECT_EQ(LossScale(bf16).value(), 8);
}

TEST(LossScale, ContinuesFromItsState) {
  LossScale whole(fp16(64, 1, 3, 2)), first(fp16(64, 1, 3, 2)), second(fp16(64, 1, 3, 2));
  scales(whole, "x.");
  scales(first, "x.");
  EXPECT_EQ(first.to_json().dump(), "{\"scale\": 64.0, \"growth_tracker\": 1, \"hysteresis_tracker\": 1}");
  second.take(first.to_json());
  for (const std::string steps : {"..", "xx", "...x"}) EXPECT_EQ(scales(whole, steps), scales(second, steps));
}

}  // namespace
}  // namespace megalith
