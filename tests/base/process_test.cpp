#include "libcore/base/process.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/support/environment.h"

namespace megalith {
namespace {

TEST(SecondsSince, CountsSeconds) {
  const auto past = std::chrono::steady_clock::now() - std::chrono::milliseconds(2500);
  EXPECT_GE(seconds_since(past), 2.5);
  EXPECT_LT(seconds_since(past), 60);
}

TEST(SecondsSince1970, IsTheTimeOfTheClock) {
  EXPECT_NEAR(seconds_since_1970(), static_cast<double>(std::time(nullptr)), 60);
}

TEST(PeakMemory, IsInBytesAndStaysWhenMemoryIsGivenBack) {
  constexpr size_t kMore = size_t{64} << 20;
  void* const block = ::mmap(nullptr, kMore, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kMore);
  const uint64_t with = peak_memory();
  ::munmap(block, kMore);
  EXPECT_GE(with, kMore);
  EXPECT_LT(with, uint64_t{1} << 40);
  EXPECT_GE(peak_memory(), with);
}

// The expected counts are those of torch.cuda._parse_visible_devices() in torch 2.15.0.
TEST(VisibleGpus, AreThoseThatTheEnvironmentNames) {
  for (const auto& [list, count] : {std::pair{"0,2", 2},
                                    {"3", 1},
                                    {" 0 , 1,2 ", 3},
                                    {"", 0},
                                    {"-1", 0},
                                    {"0,-1,1", 1},
                                    {"GPU-5a1e,MIG-77", 1},
                                    {"GPU-a,GPU-b", 2},
                                    {"GPU-a, GPU-b", 1},
                                    {"GPU-a,GPU-a", 0},
                                    {"GPU-a,x,GPU-a", 1},
                                    {"MIG-1,MIG-2", 2},
                                    {" GPU-a", 0},
                                    {"0,GPU-a", 1},
                                    {"0,0", 0},
                                    {"0,1,0", 0},
                                    {"01,1", 0},
                                    {"0,-1,0", 1},
                                    {"0x1,2", 2},
                                    {"0x1,0", 0},
                                    {"1gpu2,2ampere", 2},
                                    {"+1,2", 2},
                                    {"-0,1", 2},
                                    {"1,,2", 1},
                                    {"99999999999999999999,1", 2},
                                    {"NoDevFiles", 0}}) {
    const test::Variable shown("CUDA_VISIBLE_DEVICES", list);
    EXPECT_EQ(visible_gpus(), count) << list;
  }
}

TEST(OwnWords, BeginWithTheProgram) {
  const std::vector<std::string> words = own_words();
  ASSERT_FALSE(words.empty());
  EXPECT_TRUE(words[0].ends_with("base_test")) << words[0];
}

}  // namespace
}  // namespace megalith
