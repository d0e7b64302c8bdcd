#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

/// Enough of CUDA to run the backend's kernels on the host, for tests on machines without a device: memory is
/// host memory, a stream runs at once, and a kernel's blocks run one after the other, each with one fiber per
/// thread. A fiber runs to its next barrier or shuffle; a shuffle waits for the warp, a barrier for the
/// block. Finds wrong maths and indices, barriers that not all threads reach, and (by running the threads in
/// either order) missing barriers, but no fault that shows only on hardware.

// NOLINTBEGIN: names, signatures and macros are CUDA's
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

namespace megalith::test {

struct Index {
  unsigned x = 0;
};

/// Runs the threads of one block.
class EmulatedBlock {
 public:
  static EmulatedBlock& running() {
    static EmulatedBlock block;
    return block;
  }
  bool backwards = false;  // runs the threads in reverse order

  void run(int threads, size_t shared_bytes, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    fibers_.resize(static_cast<size_t>(threads));
    shared_.assign(shared_bytes / sizeof(Line) + 1, Line{});
    std::memset(shared_.data(), 0xff, shared_bytes);  // NaN exposes reads before the first write
    for (Fiber& fiber : fibers_) start(fiber);
    while (step()) {
    }
  }
  /// The running thread waits here for the others of its block.
  void wait() { pause(kBarrier); }
  /// Every thread of a warp gives a value and receives that of thread (own ^ apart).
  template <class T>
  T exchange(T value, unsigned apart) {
    Fiber& self = fibers_[current_];
    // Alternates two places, since a value may be read after the next one is given.
    const size_t turn = ++self.gifts % 2;
    std::memcpy(self.given[turn], &value, sizeof value);
    pause(kShuffle);
    std::memcpy(&value, fibers_[current_ ^ apart].given[turn], sizeof value);
    return value;
  }
  /// Whether `value` is true in any thread of the block.
  bool any(bool value) {
    Fiber& self = fibers_[current_];
    const size_t turn = ++self.votes % 2;
    self.vote[turn] = value;
    pause(kVote);
    return std::any_of(fibers_.begin(), fibers_.end(), [&](const Fiber& fiber) { return fiber.vote[turn]; });
  }
  float* shared() { return reinterpret_cast<float*>(shared_.data()); }

 private:
  static constexpr size_t kStack = 64 << 10, kWarp = 32;
  enum Place { kRunning, kShuffle, kBarrier, kVote, kEnded };  // what a thread waits for
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  /// A thread of the block. Started by ucontext and switched by jumps, which save no signal mask and so make
  /// no system call.
  struct Fiber {
    ucontext_t context{};
    jmp_buf place{};
    bool started = false;
    std::unique_ptr<unsigned char[]> stack;
    unsigned char given[2][8] = {};
    bool vote[2] = {};
    unsigned gifts = 0, votes = 0;
    Place waits_at = kRunning;
  };

  void start(Fiber& fiber) {
    if (!fiber.stack) fiber.stack = std::make_unique<unsigned char[]>(kStack);
    fiber.started = false;
    fiber.waits_at = kRunning;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(
        &fiber.context, [] { running().enter(); }, 0);
  }
  void enter() {
    const size_t self = current_;
    (*kernel_)();
    fibers_[self].waits_at = kEnded;
    _longjmp(scheduler_place_, 1);
  }
  void resume(Fiber& fiber) {
    if (_setjmp(scheduler_place_) != 0) return;
    if (fiber.started) _longjmp(fiber.place, 1);
    fiber.started = true;
    setcontext(&fiber.context);
  }
  void pause(Place place) {
    Fiber& self = fibers_[current_];
    self.waits_at = place;
    if (_setjmp(self.place) == 0) _longjmp(scheduler_place_, 1);
  }
  /// Runs each warp to its next barrier; false when all have ended.
  bool step();
  /// Runs each thread of a warp to the place where it waits. Returns the kind of place, which must be the
  /// same for all threads.
  Place step_warp(size_t first);
  size_t in_order(size_t i, size_t n) const { return backwards ? n - 1 - i : i; }

  const std::function<void()>* kernel_ = nullptr;
  jmp_buf scheduler_place_{};
  std::vector<Fiber> fibers_;
  std::vector<Line> shared_;
  size_t current_ = 0;
};

}  // namespace megalith::test

inline megalith::test::Index threadIdx, blockIdx, blockDim, gridDim;

namespace megalith::test {

inline EmulatedBlock::Place EmulatedBlock::step_warp(size_t first) {
  const size_t threads = std::min(kWarp, fibers_.size() - first);
  for (size_t i = 0; i < threads; ++i) {
    current_ = first + in_order(i, threads);
    threadIdx.x = static_cast<unsigned>(current_);
    if (fibers_[current_].waits_at != kEnded) resume(fibers_[current_]);
  }
  const Place place = fibers_[first].waits_at;
  for (size_t i = 0; i < threads; ++i)
    if (fibers_[first + i].waits_at != place)
      throw std::logic_error("the threads of a warp wait at different places, or some have ended");
  return place;
}

inline bool EmulatedBlock::step() {
  const size_t warps = (fibers_.size() + kWarp - 1) / kWarp;
  for (size_t i = 0; i < warps; ++i)
    while (step_warp(in_order(i, warps) * kWarp) == kShuffle) {
    }
  for (const Fiber& fiber : fibers_)
    if (fiber.waits_at != fibers_[0].waits_at)
      throw std::logic_error("the threads of a block wait at different barriers, or some have ended");
  return fibers_[0].waits_at != kEnded;
}

}  // namespace megalith::test

inline void __syncthreads() {
  megalith::test::EmulatedBlock::running().wait();
}
inline int __syncthreads_or(bool value) {
  return megalith::test::EmulatedBlock::running().any(value);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int apart) {
  return megalith::test::EmulatedBlock::running().exchange(value, static_cast<unsigned>(apart));
}

// ---- the runtime's functions

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorInvalidValue };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct EmulatedStream {};
struct EmulatedEvent {};
using cudaStream_t = EmulatedStream*;
using cudaEvent_t = EmulatedEvent*;
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : "invalid value";
}
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* left, size_t* all) {
  *left = *all = 0;
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** block, size_t bytes) {
  if (bytes > size_t{1} << 40) return cudaErrorMemoryAllocation;
  *block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* block) {
  std::free(block);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* block, int value, size_t bytes) {
  std::memset(block, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*work)(void*), void* data) {
  work(data);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
/// Allows 99 KiB of shared memory per block, as every device of compute capability 8.0 or later does; 8.6 and
/// 8.9 allow no more.
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int bytes) {
  return bytes <= 99 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}

namespace megalith::cuda {

inline float* dynamic_shared() {
  return test::EmulatedBlock::running().shared();
}

template <class Kernel>
void run_grid(cudaStream_t, int64_t blocks, int threads, size_t shared, const Kernel& kernel) {
  blockDim.x = static_cast<unsigned>(threads);
  gridDim.x = static_cast<unsigned>(blocks);
  for (int64_t block = 0; block < blocks; ++block) {
    blockIdx.x = static_cast<unsigned>(block);
    test::EmulatedBlock::running().run(threads, shared, kernel);
  }
}

}  // namespace megalith::cuda
// NOLINTEND
