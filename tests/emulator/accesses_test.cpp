// What counts as asked of global and of shared memory, by accesses that are given here.
#include "tests/emulator/accesses.h"

#include <cstdint>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/emulator/controls.h"

namespace megalith::emulator {
namespace {

/// Device memory that begins at a multiple of 32 bytes.
class AccessCounts : public testing::Test {
 protected:
  ~AccessCounts() override { cudaFree(block_); }
  /// The sectors counted while a warp of 32 threads runs f(thread).
  template <class F>
  long asked(const F& f) {
    const long before = controls().counts.sectors;
    for (size_t thread = 0; thread < 32; ++thread) {
      accesses_.begin_thread(static_cast<unsigned>(thread));
      f(thread);
    }
    accesses_.end_warp();
    return controls().counts.sectors - before;
  }
  void read(size_t at, size_t bytes, const char* instruction) {
    accesses_.add({reinterpret_cast<uintptr_t>(block_) + at, bytes, false}, instruction);
  }

  void* const block_ = [] {
    void* made = nullptr;
    cudaMalloc(&made, 1 << 20);
    return made;
  }();
  WarpAccesses accesses_;
  const char *const first_ = "first", *const second_ = "second";
};

TEST_F(AccessCounts, CountsASectorOnceForAllThreadsOfAWarp) {
  EXPECT_EQ(asked([&](size_t) { read(0, 4, first_); }), 1);
  EXPECT_EQ(asked([&](size_t thread) { read(2 * thread, 2, first_); }), 2);
  EXPECT_EQ(asked([&](size_t thread) { read(4 * thread, 4, first_); }), 4);
  EXPECT_EQ(asked([&](size_t thread) { read(16 * thread, 16, first_); }), 16);
}

TEST_F(AccessCounts, CountsSectorsThatAreAskedForInParts) {
  EXPECT_EQ(asked([&](size_t thread) { read(32 * thread, 4, first_); }), 32);
  EXPECT_EQ(asked([&](size_t thread) { read(4 * thread + 4, 4, first_); }), 5);  // beside a multiple of 32
  EXPECT_EQ(asked([&](size_t thread) { read(16 * thread + 2, 16, first_); }), 17);
  EXPECT_EQ(asked([&](size_t thread) { read(0, thread == 0 ? 33 : 1, first_); }), 2);
}

TEST_F(AccessCounts, CountsEachInstructionAndEachOfItsExecutions) {
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

// A pass serves 32 words: those of a warp, of 16 threads or of 8.
TEST_F(AccessCounts, CountsTheFurtherPassesOverABank) {
  const auto conflicts = [&](size_t stride, size_t bytes) {
    const long before = controls().counts.bank_conflicts;
    for (unsigned thread = 0; thread < 32; ++thread) {
      accesses_.begin_thread(thread);
      accesses_.add({stride * thread, bytes, true}, first_);
    }
    accesses_.end_warp();
    return controls().counts.bank_conflicts - before;
  };
  EXPECT_EQ(conflicts(4, 4), 0);
  EXPECT_EQ(conflicts(0, 4), 0);  // all read one word
  EXPECT_EQ(conflicts(2, 2), 0);
  EXPECT_EQ(conflicts(8, 4), 1);
  EXPECT_EQ(conflicts(36, 4), 0);
  EXPECT_EQ(conflicts(128, 4), 31);
  EXPECT_EQ(conflicts(8, 8), 0);
  EXPECT_EQ(conflicts(16, 8), 2);  // in each of the two passes
  EXPECT_EQ(conflicts(16, 16), 0);
  EXPECT_EQ(conflicts(144, 16), 0);
  EXPECT_EQ(conflicts(128, 16), 28);  // 7 in each of the four passes
}

}  // namespace
}  // namespace megalith::emulator
