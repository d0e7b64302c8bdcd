#include "libcore/threads/serial_executor.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

/// A job that signals when it has begun and ends when it is released. The executor must be destroyed before
/// this object.
class HeldJob {
 public:
  std::function<void()> job() {
    return [this] {
      begun_.set_value();
      released_.get_future().wait();
      ended = true;
    };
  }
  void await_begin() { begun_.get_future().wait(); }
  void release() { released_.set_value(); }
  std::atomic<bool> ended{false};

 private:
  std::promise<void> begun_, released_;
};

TEST(SerialExecutor, DoesItsJobsInOrderOnOneThread) {
  SerialExecutor thread("a test's thread");
  std::vector<int> done;
  std::vector<std::thread::id> where;
  for (int i = 0; i < 100; ++i)
    thread.give([&, i] {
      done.push_back(i);
      where.push_back(std::this_thread::get_id());
    });
  thread.wait_for_jobs();
  ASSERT_EQ(done.size(), 100U);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(done[i], static_cast<int>(i));
    EXPECT_EQ(where[i], where[0]);
  }
  EXPECT_NE(where[0], std::this_thread::get_id());
}

TEST(SerialExecutor, WaitsForAJobByItsNumberAndNotForLaterOnes) {
  HeldJob held;
  SerialExecutor thread("a test's thread");
  bool first = false;
  thread.give([&] { first = true; });
  const uint64_t number = thread.given();
  thread.give(held.job());
  thread.wait_for_job(number);
  EXPECT_TRUE(first);
  EXPECT_FALSE(held.ended);
  held.release();
  thread.wait_for_jobs();
  EXPECT_TRUE(held.ended);
}

TEST(SerialExecutor, WaitsForWhatAJobOrAnotherThreadBringsAbout) {
  SerialExecutor thread("a test's thread");
  bool told = false;
  int jobs = 0;
  thread.give([&] {
    const SerialExecutor::Lock held = thread.state().lock();
    ++jobs;
  });
  SerialExecutor::Lock lock = thread.state().lock();
  thread.state().wait(lock, [&] { return jobs == 1; });
  EXPECT_FALSE(thread.state().wait_for(lock, 1ms, [&] { return told; }));
  lock.unlock();
  auto other = std::async(std::launch::async, [&] {
    const SerialExecutor::Lock held = thread.state().lock();
    told = true;
    thread.state().changed();
  });
  lock.lock();
  thread.state().wait(lock, [&] { return told; });
  EXPECT_TRUE(thread.state().wait_for(lock, 1h, [&] { return told; }));
  lock.unlock();
  other.get();
}

TEST(SerialExecutor, BeginsNothingAfterAFailure) {
  int failures = 0;
  bool second = false, later = false;
  HeldJob held;
  SerialExecutor thread("a test's thread", [&] { ++failures; });
  thread.give([job = held.job()] {
    job();
    throw std::out_of_range("full");
  });
  thread.give([&] { second = true; });
  held.release();
  EXPECT_THROW(thread.wait_for_jobs(), std::out_of_range);
  EXPECT_THROW(thread.give([&] { later = true; }), std::out_of_range);
  EXPECT_THROW(thread.wait_for_jobs(), std::out_of_range) << "again";
  thread.drain();
  EXPECT_TRUE(thread.state().failed(thread.state().lock()));
  EXPECT_EQ(failures, 1);
  EXPECT_FALSE(second || later);
}

TEST(SerialExecutor, DropsWhatHasNotBegunWhenItIsDestroyed) {
  HeldJob held;
  bool second = false;
  std::future<void> release;
  {
    SerialExecutor thread("a test's thread");
    thread.give(held.job());
    thread.give([&] { second = true; });
    held.await_begin();
    release = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(20ms);  // the executor's destructor is waiting meanwhile
      held.release();
    });
  }
  EXPECT_TRUE(held.ended);
  EXPECT_FALSE(second);
}

TEST(SerialExecutor, TellsARunningJobToGiveUpWhenItIsDestroyed) {
  HeldJob held;
  {
    SerialExecutor thread("a test's thread");
    thread.give(held.job(), [&] { held.release(); });
    held.await_begin();
  }
  EXPECT_TRUE(held.ended);
}

TEST(SerialExecutor, GivesBackTheLastJobThatHasNotBegun) {
  HeldJob held;
  SerialExecutor thread("a test's thread");
  int done = 0;
  EXPECT_FALSE(thread.take_back());
  thread.give(held.job());
  held.await_begin();
  EXPECT_FALSE(thread.take_back()) << "it runs";
  thread.give([&] { done += 1; });
  thread.give([&] { done += 10; });
  const auto last = thread.take_back();
  ASSERT_TRUE(last);
  held.release();
  thread.wait_for_jobs();
  EXPECT_EQ(done, 1);
  (*last)();
  EXPECT_EQ(done, 11);
}

TEST(SerialExecutor, CancelKeepsItsErrorIfJobsWereLeft) {
  SerialExecutor thread("a test's thread");
  const auto error = std::make_exception_ptr(std::length_error("cancelled"));
  thread.cancel(error);
  EXPECT_NO_THROW(thread.wait_for_jobs()) << "nothing was left";
  HeldJob held;
  bool second = false;
  thread.give(held.job(), [&] { held.release(); });
  thread.give([&] { second = true; });
  held.await_begin();
  thread.cancel(error);
  EXPECT_THROW(thread.wait_for_jobs(), std::length_error);
  thread.drain();
  EXPECT_TRUE(held.ended);
  EXPECT_FALSE(second);
}

TEST(SerialExecutorDeathTest, EndsTheProcessIfAJobNeverEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto give_endless = [](SerialExecutor& thread) {
    set_last_wait_limit(200ms);
    thread.give([] { std::promise<void>().get_future().wait(); });
  };
  EXPECT_EXIT(
      {
        SerialExecutor thread("the thread that never ends");
        give_endless(thread);
        while (thread.take_back()) give_endless(thread);  // until it has begun
      },
      testing::ExitedWithCode(75), "waited 0.2 s for the thread that never ends");
  EXPECT_EXIT(
      {
        SerialExecutor thread("the thread that never ends");
        give_endless(thread);
        thread.drain();
      },
      testing::ExitedWithCode(75), "waited 0.2 s for the thread that never ends");
}

TEST(SerialExecutor, DrainWaitsForManyJobsLongerThanForOne) {
  const auto before = last_wait_limit();
  set_last_wait_limit(2s);
  int done = 0;
  SerialExecutor thread("a test's thread");
  for (int i = 0; i < 30; ++i)
    thread.give([&] {
      std::this_thread::sleep_for(100ms);
      ++done;
    });
  thread.drain();
  EXPECT_EQ(done, 30);
  set_last_wait_limit(before);
}

}  // namespace
}  // namespace megalith
