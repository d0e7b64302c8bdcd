#include "libcore/doctor/check_process.h"

#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "tests/support/compiler.h"

namespace megalith {
namespace {
using State = Finding::State;
using Clock = std::chrono::steady_clock;

Findings result_of(const std::function<Findings()>& check,
                   std::chrono::milliseconds time = std::chrono::seconds(20)) {
  return CheckProcess("memory", check).take(Clock::now() + time);
}

TEST(CheckProcess, GivesWhatTheCheckFound) {
  const Findings found = {{"memory", State::kGood, std::string(100000, 'm'), ""},
                          {"limits", State::kBad, "few", "more"}};
  EXPECT_EQ(result_of([&] { return found; }), found);
  EXPECT_EQ(result_of([]() -> Findings { fail(ErrorKind::kIo, "no file; make one"); }),
            (Findings{{"memory", State::kBad, "no file", "make one"}}));
}

TEST(CheckProcess, SaysThatTheCheckCrashed) {
  const Findings killed = result_of([]() -> Findings {
    std::raise(SIGKILL);
    return {};
  });
  ASSERT_EQ(killed.size(), 1U);
  EXPECT_EQ(killed[0].text, "the check ended by signal 9");
  EXPECT_EQ(killed[0].state, State::kBad);
  EXPECT_FALSE(killed[0].remedy.empty());
  EXPECT_EQ(result_of([]() -> Findings { ::_exit(3); })[0].text, "the check ended with code 3");
}

TEST(CheckProcess, DoesNotWaitForOneThatDoesNotEnd) {
  const auto began = Clock::now();
  const Findings found = result_of(
      []() -> Findings {
        ::pause();
        return {};
      },
      std::chrono::milliseconds(50));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].state, State::kWarning);
  EXPECT_LT(seconds_since(began), 10);
}

}  // namespace
}  // namespace megalith
