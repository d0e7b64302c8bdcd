#include "libcore/plan/profile/profile_quality.h"

#include <gtest/gtest.h>

#include "tests/plan/profile/profiles.h"

namespace megalith {
namespace {

TEST(Unsteadiness, IsOfMostPoints) {
  DeviceProfile profile = test::made_profile();
  EXPECT_EQ(unsteadiness(profile), "");
  for (size_t i = 0; i < 60; ++i) profile.points[i].spread = 0.2;
  EXPECT_EQ(unsteadiness(profile), "") << "a half is not most";
  profile.points[60].spread = 16.57;
  EXPECT_EQ(unsteadiness(profile),
            "the times of 61 of 120 points spread by more than a tenth, the worst by 1657 %; measure while "
            "nothing else runs, or for longer than 1 min 00 s (--seconds)");
  profile.points.clear();
  EXPECT_EQ(unsteadiness(profile), "");
}

}  // namespace
}  // namespace megalith
