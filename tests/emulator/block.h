#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include "tests/emulator/accesses.h"
#include "tests/emulator/copies.h"

namespace megalith::emulator {

/// CUDA's dim3, of which the kernels use x.
struct KernelIndex {
  unsigned x = 0;
};

/// Runs the threads of one block, each as a fiber. A fiber runs to its next barrier or shuffle; a shuffle
/// waits for the warp, a barrier for the block. A thread that waits resumes the next one of its warp itself,
/// and the last one the scheduler: half of the switches that a return to the scheduler after each thread
/// would take. Ends the process if the threads of a warp or a block wait at different places.
class EmulatedBlock {
 public:
  static EmulatedBlock& running();

  void run(int threads, size_t shared_bytes, const std::function<void()>& kernel);
  /// The running thread waits here for the others of its block.
  void wait() { pause(kBarrier); }
  /// The running thread's number in its warp.
  unsigned lane() const { return static_cast<unsigned>(current_ % kWarp); }
  /// Every thread of a warp gives a value and receives that of the thread with this number in the warp.
  template <class T>
  T exchange(T value, unsigned giver) {
    static_assert(sizeof(T) <= sizeof(Fiber::given[0]));
    Fiber& self = fibers_[current_];
    // Alternates two places, since a value may be read after the next one is given.
    const size_t turn = ++self.gifts % 2;
    std::memcpy(self.given[turn], &value, sizeof value);
    pause(kShuffle);
    std::memcpy(&value, fibers_[current_ / kWarp * kWarp + giver].given[turn], sizeof value);
    return value;
  }
  /// The running thread waits here for the others of its warp.
  void wait_for_warp() { pause(kShuffle); }
  /// An instruction of a warp: when every thread of the warp has called this with its operands, calls
  /// work(operands of each thread) once.
  using WarpWork = void (*)(void* const* lanes);
  void together(WarpWork work, void* operands);
  /// Whether `value` is true in any thread of the block.
  bool any(bool value);
  float* shared() { return reinterpret_cast<float*>(shared_.data()); }
  /// The offset of these bytes in the block's shared memory. Ends the process if they are not within it.
  size_t shared_place(const void* address, size_t bytes) const;
  bool in_shared(const void* address, size_t bytes) const;
  /// Those of the running thread.
  AsyncCopies& copies() { return fibers_[current_].copies; }

  bool backwards = false;  // runs the threads last to first

  /// The running thread is about to access memory. Counts it (WarpAccesses) if it is global memory, or what
  /// the block's launch asked for.
  void note_access(const void* address, size_t bytes, const void* instruction);
  /// The running thread computes a special function: a power, a logarithm, a root. Returns its result.
  float note_special(float result) {
    ++special_functions_;
    return result;
  }

 private:
  static constexpr size_t kStack = 64 << 10, kWarp = 32, kMostThreads = 1024;
  /// Without these bytes between them all stacks' tops share a few sets of the first-level cache, which each
  /// switch of threads then misses: 6 % of a training run's time (median of 3).
  static constexpr size_t kColour = 320, kColours = 64;
  enum Place { kRunning, kShuffle, kWarpWork, kBarrier, kVote, kEnded };  // what a thread waits for
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  using Context = boost::context::fiber;
  /// A thread. Its context is made once: after a kernel it waits for the next block.
  struct alignas(64) Fiber {
    Context context;
    unsigned char given[2][8] = {};
    bool vote[2] = {};
    unsigned gifts = 0, votes = 0;
    WarpWork work = nullptr;
    void* operands = nullptr;
    AsyncCopies copies;
    Place waits_at = kRunning;
  };

  void make_thread(Fiber& fiber, size_t colour);
  void run_kernels();
  /// The running thread waits here. Resumes the next thread of the warp, or the scheduler.
  void pause(Place place);
  /// Makes the thread whose turn it is in its warp the running one.
  void begin_turn();
  /// Leaves what runs now, to be resumed through `self`, and resumes `next`.
  void pass_to(Context& next, Context& self);
  /// Runs each warp to its next barrier; false when all have ended.
  bool step();
  /// Runs each thread of a warp to the place where it waits. Returns the kind of place, which must be the
  /// same for all threads.
  Place step_warp(size_t first);
  void work_together(size_t first);
  size_t in_order(size_t i, size_t n) const { return backwards ? n - 1 - i : i; }

  const std::function<void()>* kernel_ = nullptr;
  Context scheduler_;  // while a thread runs
  // Room for all threads that a block may have, since a started one must not move. Each switch finds its
  // place in here, for which a std::deque would divide.
  std::vector<Fiber> fibers_ = std::vector<Fiber>(kMostThreads);
  size_t threads_ = 0;
  std::vector<Line> shared_;
  size_t shared_bytes_ = 0;
  size_t current_ = 0;
  WarpAccesses accesses_;
  long special_functions_ = 0;  // of the block so far

  Context* left_ = nullptr;                   // where what is resumed keeps the context of what resumed it
  size_t warp_first_ = 0, warp_threads_ = 0;  // of the warp that runs
  size_t turn_ = 0;                           // how many of its threads have run
};

}  // namespace megalith::emulator
