#include "libcore/io/streams/stop_signal.h"

#include <csignal>
#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

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

TEST(StopSignal, KeepsTheFirst) {
  const StopSignal stop;
  for (const int number : {SIGUSR1, SIGTERM, SIGINT}) std::raise(number);
  EXPECT_EQ(stop.name(), "SIGUSR1");
}

// The process that starts ranks passes SIGINT on as a SIGTERM, since a second SIGINT would end a rank.
TEST(StopSignal, KnowsAnInterruptThatWasPassedOn) {
  for (const auto& [value, name] : {std::pair{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {0, "SIGTERM"}}) {
    const StopSignal stop;
    ASSERT_EQ(::sigqueue(::getpid(), SIGTERM, sigval{.sival_int = value}), 0);
    EXPECT_EQ(stop.name(), name);
    std::raise(SIGINT);  // the terminal's own one, which is the first
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
