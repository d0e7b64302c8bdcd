#include "libcore/io/run/stop_signal.h"

#include <csignal>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(StopSignal, RemembersTheSignalInsteadOfDying) {
  for (const auto& [number, name] :
       {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}}) {
    const StopSignal stop;
    EXPECT_FALSE(stop.asked());
    EXPECT_EQ(stop.name(), "");
    std::raise(number);
    EXPECT_TRUE(stop.asked());
    EXPECT_EQ(stop.name(), name);
  }
}

TEST(StopSignalDeathTest, EndsAtTheSecondInterrupt) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignalDeathTest, PutsBackWhatWasThere) {
  EXPECT_EXIT(
      {
        { const StopSignal stop; }
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace megalith
