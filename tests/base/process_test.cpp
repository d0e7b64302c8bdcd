#include "libcore/base/process.h"

#include <chrono>
#include <cstring>

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace megalith
