// Which sectors count as asked of global memory, by accesses that are given here.
#include "tests/emulator/sectors.h"

#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/emulator/controls.h"

namespace megalith::emulator {
namespace {

/// Device memory that begins at a multiple of 32 bytes.
class SectorCounts : public testing::Test {
 protected:
  ~SectorCounts() override { cudaFree(block_); }
  /// The sectors counted while a warp of 32 threads runs f(thread).
  template <class F>
  long asked(const F& f) {
    const long before = controls().counts.sectors;
    for (size_t thread = 0; thread < 32; ++thread) {
      count_.begin_thread();
      f(thread);
    }
    count_.end_warp();
    return controls().counts.sectors - before;
  }
  void read(size_t at, size_t bytes, const char* instruction) {
    count_.access(static_cast<char*>(block_) + at, bytes, instruction);
  }

  void* const block_ = [] {
    void* made = nullptr;
    cudaMalloc(&made, 1 << 20);
    return made;
  }();
  SectorCount count_;
  const char *const first_ = "first", *const second_ = "second";
};

TEST_F(SectorCounts, CountsASectorOnceForAllThreadsOfAWarp) {
  EXPECT_EQ(asked([&](size_t) { read(0, 4, first_); }), 1);
  EXPECT_EQ(asked([&](size_t thread) { read(2 * thread, 2, first_); }), 2);
  EXPECT_EQ(asked([&](size_t thread) { read(4 * thread, 4, first_); }), 4);
  EXPECT_EQ(asked([&](size_t thread) { read(16 * thread, 16, first_); }), 16);
}

TEST_F(SectorCounts, CountsSectorsThatAreAskedForInParts) {
  EXPECT_EQ(asked([&](size_t thread) { read(32 * thread, 4, first_); }), 32);
  EXPECT_EQ(asked([&](size_t thread) { read(4 * thread + 4, 4, first_); }), 5);  // beside a multiple of 32
  EXPECT_EQ(asked([&](size_t thread) { read(16 * thread + 2, 16, first_); }), 17);
  EXPECT_EQ(asked([&](size_t thread) { read(0, thread == 0 ? 33 : 1, first_); }), 2);
}

TEST_F(SectorCounts, CountsEachInstructionAndEachOfItsExecutions) {
  EXPECT_EQ(asked([&](size_t thread) {
              read(4 * thread, 4, first_);
              read(4 * thread, 4, second_);
            }),
            8);
  EXPECT_EQ(asked([&](size_t thread) {
              for (size_t i = 0; i < 3; ++i) read(512 * i + 4 * thread, 4, first_);
            }),
            12);
  EXPECT_EQ(asked([&](size_t thread) {  // the second time, only some threads
              read(4 * thread, 4, first_);
              if (thread < 8) read(4 * thread, 4, first_);
            }),
            5);
}

TEST_F(SectorCounts, LeavesOutTheMemoryOfTheHost) {
  const int host = 0;
  EXPECT_EQ(asked([&](size_t) { count_.access(&host, 4, first_); }), 0);
}

}  // namespace
}  // namespace megalith::emulator
