#include "libcore/io/files/io_thread.h"

#include <future>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(IoThread, DoesItsJobsInOrder) {
  IoThread thread;
  std::vector<int> worked, done;
  for (int i = 0; i < 100; ++i)
    thread.give({.work = [&worked, i] { worked.push_back(i); }, .done = [&done, i] { done.push_back(i); }});
  thread.wait_for_jobs();
  ASSERT_EQ(worked.size(), 100U);
  EXPECT_EQ(worked, done);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(worked[static_cast<size_t>(i)], i);
}

TEST(IoThread, WaitsForWhatAJobOrAnotherThreadBringsAbout) {
  IoThread thread;
  bool told = false;
  int jobs = 0;
  thread.give({.work = [] {}, .done = [&] { ++jobs; }});
  IoThread::Lock lock = thread.lock();
  thread.wait(lock, [&] { return jobs == 1; });
  lock.unlock();
  auto other = std::async(std::launch::async, [&] {
    const IoThread::Lock held = thread.lock();
    told = true;
    thread.changed();
  });
  lock.lock();
  thread.wait(lock, [&] { return told; });
  lock.unlock();
  other.get();
}

TEST(IoThread, BeginsNothingAfterAFailure) {
  int failures = 0;
  bool done = false, later = false;
  IoThread thread([&] { ++failures; });
  thread.give({.work = [] { throw std::out_of_range("full"); }, .done = [&] { done = true; }});
  EXPECT_THROW(thread.wait_for_jobs(), std::out_of_range);
  thread.give({.work = [&] { later = true; }});
  EXPECT_THROW(thread.wait_for_jobs(), std::out_of_range);
  EXPECT_TRUE(thread.failed(thread.lock()));
  EXPECT_EQ(failures, 1);
  EXPECT_FALSE(done || later);
}

TEST(IoThread, DropsWhatHasNotBegunWhenItIsDestroyed) {
  std::promise<void> begun, go_on;
  bool first = false, second = false;
  std::future<void> release;
  {
    IoThread thread;
    thread.give({.work = [&] {
      begun.set_value();
      go_on.get_future().wait();
      first = true;
    }});
    thread.give({.work = [&] { second = true; }});
    begun.get_future().wait();
    release = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the destructor waits meanwhile
      go_on.set_value();
    });
  }
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
}

}  // namespace
}  // namespace megalith
