#include "libcore/parallel/together.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kTimeout(1000);

/// Runs the body on each rank; ranks are threads. Returns the message of the error that each rank threw.
std::vector<std::string> run(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<std::string> messages(static_cast<size_t>(ranks));
  const auto each = [&](Communicator& comm) {
    try {
      body(comm);
    } catch (const Error& error) {
      messages[static_cast<size_t>(comm.rank())] = error.what();
      comm.abort(error.what());
    }
  };
  try {
    run_thread_ranks(ranks, {.timeout = kTimeout}, each);
  } catch (const Error&) {  // the run's first error; each rank's own message is in `messages`
  }
  return messages;
}

TEST(Together, WaitsForTheSlowestLongerThanForASilentRank) {
  std::atomic<int> done{0};
  const auto messages = run(3, [&](Communicator& comm) {
    do_together(comm, kTimeout, [&](const auto&) {
      if (comm.rank() == 1) std::this_thread::sleep_for(3 * kTimeout);
      ++done;
    });
    EXPECT_EQ(done, 3);
    EXPECT_EQ(comm.exchange("x").size(), 3U);  // the group's next call works
  });
  for (const std::string& message : messages) EXPECT_EQ(message, "");
}

TEST(Together, AFailureEndsTheWorkOfTheOthersAtOnce) {
  const auto messages = run(2, [&](Communicator& comm) {
    do_together(comm, kTimeout, [&](const auto& check) {
      if (comm.rank() == 1) fail(ErrorKind::kData, "the corpus is damaged");
      const auto last = Clock::now() + std::chrono::seconds(20);
      while (Clock::now() < last) check();
      ADD_FAILURE() << "nobody said that the other rank failed";
    });
  });
  EXPECT_EQ(messages[1], "the corpus is damaged");
  EXPECT_NE(messages[0].find("the corpus is damaged"), std::string::npos) << messages[0];
}

TEST(Together, ASilentRankIsMissed) {
  const auto messages = run(2, [&](Communicator& comm) {
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(3 * kTimeout);
      return;
    }
    do_together(comm, kTimeout, [&](const auto& check) {
      const auto last = Clock::now() + std::chrono::seconds(20);
      while (Clock::now() < last) check();
    });
  });
  EXPECT_NE(messages[0].find("rank 1"), std::string::npos) << messages[0];
}

TEST(Together, OneRankAloneJustWorks) {
  bool done = false;
  run(1, [&](Communicator& comm) { do_together(comm, kTimeout, [&](const auto&) { done = true; }); });
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace megalith
