#include "libcore/base/process.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

namespace megalith {
namespace {

TEST(SecondsSince, CountsSeconds) {
  const auto past = std::chrono::steady_clock::now() - std::chrono::milliseconds(2500);
  EXPECT_GE(seconds_since(past), 2.5);
  EXPECT_LT(seconds_since(past), 60);
}

TEST(PeakMemory, IsInBytesAndStaysWhenMemoryIsGivenBack) {
  constexpr size_t kMore = size_t{64} << 20;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-cstyle-cast): of the system's own macro
  void* const block = ::mmap(nullptr, kMore, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kMore);
  const uint64_t with = peak_memory();
  ::munmap(block, kMore);
  EXPECT_GE(with, kMore);
  EXPECT_LT(with, uint64_t{1} << 40);
  EXPECT_GE(peak_memory(), with);
}

TEST(BeginElsewhere, LeavesTheCallersCpuAndMayReturn) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  const int cpus = CPU_COUNT(&all);
  std::atomic<bool> end{false};
  bool left = cpus == 1;
  // Between two looks the system may move either thread: one time of many is enough, but it must come.
  for (int i = 0; i < 1000 && !left; ++i) {
    std::atomic<int> cpu{-1};
    const int here = ::sched_getcpu();
    std::thread thread([&] { cpu = ::sched_getcpu(); });
    begin_elsewhere(thread, 1);
    thread.join();
    left = cpu != here;
  }
  EXPECT_TRUE(left);
  std::thread thread([&] { end.wait(false); });
  for (size_t nth = 0; nth < 2 * static_cast<size_t>(cpus) + 1; ++nth) begin_elsewhere(thread, nth);
  cpu_set_t after;
  EXPECT_EQ(::pthread_getaffinity_np(thread.native_handle(), sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&all, &after));
  end = true;
  end.notify_one();
  thread.join();
}

}  // namespace
}  // namespace megalith
