#include "libcore/threads/thread_spread.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

namespace megalith {
namespace {

cpu_set_t allowed() {
  cpu_set_t all;
  EXPECT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  return all;
}

std::vector<int> numbers(const cpu_set_t& set) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

/// Keeps the calling thread on one CPU for its lifetime.
class Pinned {
 public:
  explicit Pinned(int cpu) : all_(allowed()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~Pinned() { EXPECT_EQ(::sched_setaffinity(0, sizeof all_, &all_), 0); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t all_;
};

/// A thread that never sleeps and says where it is.
class Busy {
 public:
  Busy()
      : thread_([this] {
          while (!end_) {
            cpu_ = ::sched_getcpu();
            ++looks_;
            std::this_thread::yield();
          }
        }) {}
  ~Busy() {
    end_ = true;
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  std::thread& thread() { return thread_; }
  int cpu_now() const {
    for (const uint64_t seen = looks_; looks_ < seen + 2;) std::this_thread::yield();
    return cpu_;
  }

 private:
  std::atomic<bool> end_{false};
  std::atomic<uint64_t> looks_{0};
  std::atomic<int> cpu_{-1};
  std::thread thread_;
};

TEST(BeginElsewhere, PutsTheThreadOnTheNextCpu) {
  const cpu_set_t all = allowed();
  const std::vector<int> cpus = numbers(all);
  Busy busy;
  // Where the thread is when its caller comes there, too, it stays for a while unless it is moved: the system
  // may do that meanwhile, but not so often.
  int moved = 0;
  constexpr int kTimes = 100;
  for (int i = 0; i < kTimes; ++i) {
    const size_t here = static_cast<size_t>(i) % cpus.size();
    const Pinned pinned(cpus[here]);
    begin_elsewhere(busy.thread(), 1);
    moved += busy.cpu_now() == cpus[(here + 1) % cpus.size()] ? 1 : 0;
  }
  EXPECT_GE(moved, cpus.size() > 1 ? kTimes * 8 / 10 : kTimes);
  for (size_t nth = 0; nth < 2 * cpus.size() + 1; ++nth) begin_elsewhere(busy.thread(), nth);
  cpu_set_t after;
  EXPECT_EQ(::pthread_getaffinity_np(busy.thread().native_handle(), sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&all, &after));
}

/// One thread plays two, who then are always on the same CPU.
TEST(ThreadSpread, MovesTheSecondBusyThreadOfACpu) {
  const cpu_set_t all = allowed();
  const bool several = CPU_COUNT(&all) > 1;
  int moved = 0;
  constexpr int kTimes = 20;
  for (int i = 0; i < kTimes; ++i) {
    ThreadSpread spread(2);
    EXPECT_FALSE(spread.begin_work(0));
    const int there = ::sched_getcpu();
    const bool went = spread.begin_work(1);
    moved += went && ::sched_getcpu() != there ? 1 : 0;
    spread.end_work(0);
    spread.end_work(1);
    EXPECT_FALSE(spread.begin_work(1)) << "where nobody else is busy";
  }
  EXPECT_GE(moved, several ? kTimes * 8 / 10 : 0);
  const cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&all, &after));
}

TEST(ThreadSpread, LeavesThemWhereThereAreNotEnoughCpus) {
  const Pinned pinned(::sched_getcpu());
  ThreadSpread spread(2);
  EXPECT_FALSE(spread.begin_work(0));
  EXPECT_FALSE(spread.begin_work(1));
}

TEST(ThreadSpread, MovesAThreadSeldom) {
  ThreadSpread spread(2);
  const auto begin = std::chrono::steady_clock::now();
  int moves = 0;
  for (int i = 0; i < 1000; ++i) {
    spread.begin_work(0);  // is there now, so that 1 would have to go again
    moves += spread.begin_work(1) ? 1 : 0;
  }
  const auto rests = (std::chrono::steady_clock::now() - begin) / ThreadSpread::kRest;
  EXPECT_LE(moves, rests + 1);
}

}  // namespace
}  // namespace megalith
