#include "libcore/threads/thread_spread.h"

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

namespace megalith {
namespace {

std::vector<int> numbers(const cpu_set_t& set) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

/// A scheduler for the thread that made it, while it lives: this thread is where `here` says and may run on
/// `allowed`; what moves a thread is noted and not done. (A real one moves threads whenever it likes, so that
/// nothing could be expected of it for certain.)
class FakeScheduler {
 public:
  explicit FakeScheduler(std::initializer_list<int> cpus) : here(*cpus.begin()) {
    CPU_ZERO(&allowed);
    for (const int cpu : cpus) CPU_SET(cpu, &allowed);
    now_ = this;
  }
  ~FakeScheduler() { now_ = nullptr; }
  FakeScheduler(const FakeScheduler&) = delete;
  FakeScheduler& operator=(const FakeScheduler&) = delete;
  static FakeScheduler* now() { return now_; }

  int here;
  cpu_set_t allowed;
  std::vector<std::vector<int>> moves;  // the CPUs that were given, call by call

 private:
  static thread_local FakeScheduler* now_;
};
thread_local FakeScheduler* FakeScheduler::now_ = nullptr;

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace megalith

// The program's functions come before the C library's, for libmegalith too.
extern "C" {
int sched_getcpu() noexcept {
  const auto* const fake = megalith::FakeScheduler::now();
  return fake ? fake->here : megalith::real<int()>("sched_getcpu")();
}
int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* set) noexcept {
  const auto* const fake = megalith::FakeScheduler::now();
  if (!fake) return megalith::real<int(pid_t, size_t, cpu_set_t*)>("sched_getaffinity")(process, bytes, set);
  *set = fake->allowed;
  return 0;
}
int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* set) noexcept {
  const auto* const fake = megalith::FakeScheduler::now();
  if (!fake)
    return megalith::real<int(pthread_t, size_t, cpu_set_t*)>("pthread_getaffinity_np")(thread, bytes, set);
  *set = fake->allowed;
  return 0;
}
int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* set) noexcept {
  auto* const fake = megalith::FakeScheduler::now();
  if (!fake)
    return megalith::real<int(pthread_t, size_t, const cpu_set_t*)>("pthread_setaffinity_np")(thread, bytes,
                                                                                              set);
  fake->moves.push_back(megalith::numbers(*set));
  return 0;
}
}

namespace megalith {
namespace {

using Moves = std::vector<std::vector<int>>;

TEST(BeginElsewhere, PutsTheThreadOnTheNthCpuAfterTheCallers) {
  FakeScheduler scheduler({1, 4, 5});
  std::thread thread([] {});
  for (size_t nth = 0; nth < 7; ++nth) {
    scheduler.moves.clear();
    begin_elsewhere(thread, nth);
    const std::vector<int> from_here = {1, 4, 5};  // then from the first again
    EXPECT_EQ(scheduler.moves, (Moves{{from_here[nth % 3]}, {1, 4, 5}})) << nth;
  }
  scheduler.here = 5;
  scheduler.moves.clear();
  begin_elsewhere(thread, 1);
  EXPECT_EQ(scheduler.moves, (Moves{{1}, {1, 4, 5}}));
  thread.join();
}

// With the system's own scheduler: where it runs is not asked, only that it may run anywhere afterwards.
TEST(BeginElsewhere, LeavesTheThreadAllItsCpus) {
  cpu_set_t all, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  std::atomic<bool> end{false};
  std::thread thread([&] {
    while (!end) std::this_thread::yield();
  });
  for (size_t nth = 0; nth < 5; ++nth) begin_elsewhere(thread, nth);
  EXPECT_EQ(::pthread_getaffinity_np(thread.native_handle(), sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&all, &after));
  end = true;
  thread.join();
}

/// One thread plays two, who then are on the same CPU.
TEST(ThreadSpread, MovesTheSecondBusyThreadOfACpu) {
  FakeScheduler scheduler({0, 1, 3});
  ThreadSpread spread(3);
  EXPECT_FALSE(spread.begin_work(0));
  EXPECT_TRUE(spread.begin_work(1));
  EXPECT_EQ(scheduler.moves, (Moves{{1}, {0, 1, 3}}));
  scheduler.moves.clear();
  EXPECT_TRUE(spread.begin_work(2));
  EXPECT_EQ(scheduler.moves, (Moves{{3}, {0, 1, 3}}));
  for (size_t number = 0; number < 3; ++number) spread.end_work(number);
  EXPECT_FALSE(spread.begin_work(1)) << "where nobody else is busy";
}

TEST(ThreadSpread, LeavesThemWhereThereAreNotEnoughCpus) {
  FakeScheduler scheduler({2});
  ThreadSpread spread(2);
  EXPECT_FALSE(spread.begin_work(0));
  EXPECT_FALSE(spread.begin_work(1));
  EXPECT_TRUE(scheduler.moves.empty());
}

TEST(ThreadSpread, MovesAThreadSeldom) {
  FakeScheduler scheduler({0, 1});
  ThreadSpread spread(2);
  const auto begin = std::chrono::steady_clock::now();
  int moves = 0;
  for (int i = 0; i < 1000; ++i) {
    spread.begin_work(0);  // is there now, so that 1 would have to go again
    moves += spread.begin_work(1) ? 1 : 0;
  }
  const auto rests = (std::chrono::steady_clock::now() - begin) / ThreadSpread::kRest;
  EXPECT_GE(moves, 1);
  EXPECT_LE(moves, rests + 1);
}

}  // namespace
}  // namespace megalith
