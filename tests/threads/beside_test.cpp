#include "libcore/threads/beside.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {

// Deadlocks unless both run at once: the work waits for the owner, and the owner for the work.
TEST(Beside, WorksWhileItsOwnerDoes) {
  std::promise<void> owner, worker;
  Beside work("a test's work", [&] {
    owner.get_future().wait();
    worker.set_value();
  });
  owner.set_value();
  worker.get_future().wait();
  work.wait();
}

TEST(Beside, RethrowsWhatTheWorkThrew) {
  Beside work("a test's work", [] { throw std::out_of_range("here"); });
  EXPECT_THROW(work.wait(), std::out_of_range);
  EXPECT_NO_THROW(Beside("a test's work", [] { throw std::out_of_range("nobody waits"); }));
}

TEST(Beside, IsOverWhenItIsDestroyed) {
  std::atomic<bool> done = false;
  {
    const Beside work("a test's work", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = true;
    });
  }
  EXPECT_TRUE(done);
}

TEST(RunBeside, GivesEachShareToAThreadOfItsOwn) {
  for (const size_t shares : {0, 1, 2, 9}) {
    std::vector<std::thread::id> threads(shares);
    std::atomic<size_t> waiting = shares;
    run_beside(shares, [&](size_t i) {
      threads[i] = std::this_thread::get_id();
      --waiting;
      while (waiting > 0) std::this_thread::yield();  // waits until all shares have begun
    });
    if (shares > 0) {
      EXPECT_EQ(threads[0], std::this_thread::get_id());
    }
    std::sort(threads.begin(), threads.end());
    EXPECT_EQ(std::unique(threads.begin(), threads.end()), threads.end());
  }
}

TEST(RunBeside, RethrowsWhenAllHaveEnded) {
  std::atomic<int> ended = 0;
  EXPECT_THROW(run_beside(4,
                          [&](size_t i) {
                            ++ended;
                            if (i == 2) throw std::out_of_range("share 2");
                          }),
               std::out_of_range);
  EXPECT_EQ(ended, 4);
}

TEST(RunBeside, WaitsForEveryShareHoweverLongItTakes) {
  const auto before = last_wait_limit();
  set_last_wait_limit(std::chrono::milliseconds(1));
  std::atomic<int> ended = 0;
  const auto work = [&](size_t i) {
    if (i == 0) throw std::out_of_range("the first");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ++ended;
  };
  EXPECT_THROW(run_beside(3, work), std::out_of_range);
  EXPECT_EQ(ended, 2);
  set_last_wait_limit(before);
}

TEST(BesideDeathTest, EndsTheProcessIfTheWorkNeverEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        set_last_wait_limit(std::chrono::milliseconds(200));
        const Beside work("work without an end", [] { std::promise<void>().get_future().wait(); });
      },
      testing::ExitedWithCode(75), "waited 0.2 s for work without an end");
}

}  // namespace
}  // namespace megalith
