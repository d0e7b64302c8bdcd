#include "libcore/io/streams/held_signals.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

TEST(HeldSignals, ComeAfterwards) {
  for (const int number : kStopSignals) {
    const StopSignal stop;
    {
      const HeldSignals held;
      std::raise(number);
      EXPECT_FALSE(stop.asked());
    }
    EXPECT_EQ(stop.number(), number);
  }
}

/// How a forked child ends that gets the signal before it would call exec. Its StopSignal is its parent's.
int end_of_child(int number) {
  const StopSignal stop;
  const HeldSignals held;
  const pid_t child = ::fork();
  if (child == 0) {
    std::raise(number);
    held.let_end_child();
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(HeldSignals, EndAChildThatHasNotBegun) {
  for (const int number : kStopSignals) {
    const int status = end_of_child(number);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number;
  }
}

TEST(HeldSignals, StayIgnoredInAChild) {
  const auto before = std::signal(SIGHUP, SIG_IGN);  // as under nohup
  const int status = end_of_child(SIGHUP);
  std::signal(SIGHUP, before);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

}  // namespace
}  // namespace megalith
