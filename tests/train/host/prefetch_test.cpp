#include "libcore/train/host/prefetch.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(Prefetch, WorksWhileItsOwnerDoesSomethingElse) {
  Prefetch prefetch;
  std::thread::id worker;
  for (int round = 0; round < 3; ++round) {
    std::promise<void> arrived, leave;
    prefetch.start([&](const std::atomic<bool>& cancelled) {
      worker = std::this_thread::get_id();
      EXPECT_FALSE(cancelled);
      arrived.set_value();
      leave.get_future().wait();
    });
    arrived.get_future().wait();  // the job begins before finish() is called
    leave.set_value();
    prefetch.finish();
    EXPECT_NE(worker, std::this_thread::get_id());
  }
}

TEST(Prefetch, ThrowsTheJobsErrorOnceAndContinues) {
  Prefetch prefetch;
  prefetch.start([](const auto&) { throw std::out_of_range("seven"); });
  try {
    prefetch.finish();
    FAIL() << "the job's error is lost";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "seven");
  }
  bool done = false;
  prefetch.start([&](const auto&) { done = true; });
  prefetch.finish();
  EXPECT_TRUE(done);
}

TEST(Prefetch, CancelsTheJobBeforeAndForgetsItsError) {
  Prefetch prefetch;
  std::promise<void> begun;
  int ended = 0;
  prefetch.start([&](const std::atomic<bool>& cancelled) {
    begun.set_value();
    while (!cancelled) std::this_thread::yield();
    ended = 1;
    throw std::runtime_error("nobody asks for it");
  });
  begun.get_future().wait();
  prefetch.start([&](const std::atomic<bool>& cancelled) {
    EXPECT_FALSE(cancelled);
    ended += 10;
  });
  EXPECT_NO_THROW(prefetch.finish());
  EXPECT_EQ(ended, 11);
}

TEST(Prefetch, EndsWithAJobUnderWay) {
  std::promise<void> begun;
  bool ended = false;
  {
    Prefetch prefetch;
    prefetch.start([&](const std::atomic<bool>& cancelled) {
      begun.set_value();
      while (!cancelled) std::this_thread::yield();
      ended = true;
    });
    begun.get_future().wait();
  }
  EXPECT_TRUE(ended);
}

TEST(Prefetch, RefusesToFinishNothing) {
  Prefetch prefetch;
  EXPECT_THROW(prefetch.finish(), Error);
  prefetch.start([](const auto&) {});
  prefetch.finish();
  EXPECT_THROW(prefetch.finish(), Error);
}

}  // namespace
}  // namespace megalith
