#include "libcore/checkpoint/loss_history.h"

#include <limits>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(LossHistory, IsTheSameAfterAPauseAtAnyIteration) {
  LossHistory whole, first;
  for (int64_t i = 1; i <= 20'000; ++i) {
    whole.add_train(i, 1.0 / static_cast<double>(i));
    if (i % 100 == 0) whole.add_valid(i, 0.1 + static_cast<double>(i));
  }
  for (const int64_t pause : {1, 3999, 4001, 12'345}) {
    LossHistory part;
    for (int64_t i = 1; i <= 20'000; ++i) {
      part.add_train(i, 1.0 / static_cast<double>(i));
      if (i % 100 == 0) part.add_valid(i, 0.1 + static_cast<double>(i));
      if (i == pause) part = LossHistory::from_json(Json::parse(part.to_json().dump(), "losses"), "losses");
    }
    EXPECT_EQ(part.to_json(), whole.to_json()) << pause;
  }
  EXPECT_EQ(whole.train().size(), 2500U);  // the losses of every eighth iteration
  EXPECT_EQ(whole.train().begin()->first, 8);
  EXPECT_EQ(whole.valid().size(), 200U);
}

TEST(LossHistory, LeavesOutWhatIsNotFiniteAndRefusesOtherJson) {
  LossHistory losses;
  losses.add_train(1, std::numeric_limits<double>::quiet_NaN());
  losses.add_valid(1, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(losses.train().empty() && losses.valid().empty());
  for (const char* text :
       {"{}", R"({"every": 1, "train": [[1]], "valid": []})", R"({"every": 1, "train": 3, "valid": []})",
        R"({"every": 0, "train": [], "valid": []})"})
    EXPECT_THROW(LossHistory::from_json(Json::parse(text, "losses"), "losses"), Error) << text;
}

}  // namespace
}  // namespace megalith
