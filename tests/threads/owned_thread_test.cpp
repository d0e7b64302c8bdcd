#include "libcore/threads/owned_thread.h"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

TEST(OwnedThread, IsOverWhenItIsDestroyedAndAfterJoin) {
  bool done = false;
  const auto body = [&] {
    std::this_thread::sleep_for(20ms);
    done = true;
  };
  { const OwnedThread thread("a test's thread", body); }
  EXPECT_TRUE(std::exchange(done, false));
  OwnedThread thread("a test's thread", body);
  thread.join();
  EXPECT_TRUE(done);
  thread.join();
}

TEST(OwnedThreadDeathTest, EndsTheProcessAfterTheLimit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        set_last_wait_limit(200ms);
        const OwnedThread thread("a thread without an end", [] { std::promise<void>().get_future().wait(); });
      },
      testing::ExitedWithCode(75),
      "error: waited 0.2 s for a thread without an end, which does not end; the process ends without it");
}

}  // namespace
}  // namespace megalith
