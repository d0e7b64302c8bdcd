#include "libcore/ops/step_maths.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// torch.nn.utils.clip_grad_norm_: max_norm / (total_norm + 1e-6), clamped to 1.
TEST(ClipFactor, IsTorchs) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(4.0, 1.0), 1.0 / 4.000001);
  EXPECT_EQ(clip_factor(4.0, 0), 1.0);
  EXPECT_EQ(clip_factor(0, 1.0), 1.0);
  EXPECT_LT(clip_factor(1.0, 1.0), 1.0);  // as in torch
}

}  // namespace
}  // namespace megalith
