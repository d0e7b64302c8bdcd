// What the emulated device promises: each misuse ends the process, and work runs late in every order that
// events allow.
#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cublasLt.h>
#include <gtest/gtest.h>

#include "tests/emulator/controls.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

constexpr int kThreads = 64;

/// Device memory and a stream, as CUDA's functions make them.
class EmulatedDevice : public testing::Test {
 protected:
  ~EmulatedDevice() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    for (void* const block : blocks_) cudaFree(block);
  }
  float* floats(size_t n) {
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, n * sizeof(float)), cudaSuccess);
    blocks_.push_back(block);
    return static_cast<float*>(block);
  }
  void run(int64_t blocks, const std::function<void()>& kernel) {
    cuda::run_grid(stream_, blocks, kThreads, 0, kernel);
  }
  std::vector<float> read(const float* from, size_t n) {
    std::vector<float> values(n);
    cudaMemcpyAsync(values.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost, stream_);
    cudaStreamSynchronize(stream_);
    return values;
  }

  cudaStream_t stream_ = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  std::vector<void*> blocks_;
};
using EmulatedDeviceDeathTest = EmulatedDevice;

const auto kEndsMisused = testing::ExitedWithCode(kMisused);

TEST_F(EmulatedDevice, HasMemoryFullOfNan) {
  for (const float value : read(floats(1000), 1000)) EXPECT_TRUE(std::isnan(value));
}

TEST_F(EmulatedDevice, HasAsMuchMemoryAsTheControlsSay) {
  size_t left = 0, all = 0, less = 0;
  cudaMemGetInfo(&left, &all);
  EXPECT_EQ(all, controls().memory);
  floats(256);
  cudaMemGetInfo(&less, &all);
  EXPECT_EQ(left - less, 1024U);
  void* block = nullptr;
  EXPECT_EQ(cudaMalloc(&block, less + 1), cudaErrorMemoryAllocation);
}

TEST_F(EmulatedDevice, ReadsPageLockedMemoryWhenACopyRunsAndPageableMemoryAtOnce) {
  float* const x = floats(2);
  void* block = nullptr;
  cudaMallocHost(&block, sizeof(float));
  float *const locked = static_cast<float*>(block), pageable = 1;
  *locked = 1;
  const long before = controls().counts.waits;
  cudaMemcpyAsync(x, locked, sizeof(float), cudaMemcpyHostToDevice, stream_);
  EXPECT_EQ(controls().counts.waits, before);
  cudaMemcpyAsync(x + 1, &pageable, sizeof(float), cudaMemcpyHostToDevice, stream_);
  EXPECT_EQ(controls().counts.waits, before + 1);
  *locked = pageable = 2;
  EXPECT_EQ(read(x, 2), (std::vector<float>{2, 1}));
  cudaFreeHost(block);
}

TEST_F(EmulatedDeviceDeathTest, EndsCopiesFromPageLockedMemoryThatWasFreed) {
  float* const x = floats(1);
  const auto copy = [&] {
    void* block = nullptr;
    cudaMallocHost(&block, sizeof(float));
    cudaMemcpyAsync(x, block, sizeof(float), cudaMemcpyHostToDevice, stream_);
    cudaFreeHost(block);
    cudaStreamSynchronize(stream_);
  };
  EXPECT_EXIT(copy(), kEndsMisused, "page-locked memory that was freed");
  float host = 0;
  EXPECT_EXIT(cudaFreeHost(&host), kEndsMisused, "cudaMallocHost did not return");
}

TEST_F(EmulatedDevice, RunsWorkWhenTheHostWaits) {
  float* const x = floats(1);
  bool ran = false;
  run(1, [&ran] { ran = true; });
  EXPECT_FALSE(ran);
  read(x, 1);
  EXPECT_TRUE(ran);
}

/// The order in which two streams' kernels ran, as a string of their names.
std::string order_of_streams(unsigned seed, bool with_event) {
  controls().order = seed;
  std::string order;
  cudaStream_t streams[2] = {};
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const auto put = [&](cudaStream_t stream, char name) {
    cuda::run_grid(stream, 1, 1, 0, [&order, name] { order += name; });
  };
  for (const char name : {'a', 'b', 'c'}) put(streams[0], name);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, streams[0]);
  if (with_event) cudaStreamWaitEvent(streams[1], event, 0);
  for (const char name : {'1', '2', '3'}) put(streams[1], name);
  for (cudaStream_t stream : streams) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  cudaEventDestroy(event);
  return order;
}

// Otherwise a host could not see meanwhile that another rank has failed.
TEST_F(EmulatedDevice, AnswersAQuestionSoonHoweverMuchItHasToDo) {
  using namespace std::chrono_literals;
  constexpr int kPieces = 40;
  int done = 0;
  for (int piece = 0; piece < kPieces; ++piece)
    cudaLaunchHostFunc(
        stream_,
        [](void* count) {
          std::this_thread::sleep_for(20ms);
          ++*static_cast<int*>(count);
        },
        &done);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  EXPECT_GT(done, 0);
  EXPECT_LT(done, kPieces);
  while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
  }
  EXPECT_EQ(done, kPieces);
}

TEST_F(EmulatedDevice, OrdersStreamsByEventsAlone) {
  std::set<std::string> orders, ordered;
  for (unsigned seed = 0; seed < 20; ++seed) {
    orders.insert(order_of_streams(seed, false));
    ordered.insert(order_of_streams(seed, true));
  }
  EXPECT_GT(orders.size(), 3U);
  EXPECT_EQ(ordered, std::set<std::string>{"abc123"});
}

TEST_F(EmulatedDeviceDeathTest, EndsHostFunctionsThatCallCuda) {
  const auto call = [&] {
    cudaLaunchHostFunc(
        stream_, [](void*) { cudaSetDevice(0); }, nullptr);
    cudaStreamSynchronize(stream_);
  };
  EXPECT_EXIT(call(), kEndsMisused, "a host function calls CUDA");
}

TEST_F(EmulatedDeviceDeathTest, EndsHostCodeThatTouchesDeviceMemory) {
  float* const x = floats(8);
  EXPECT_EXIT(x[0] = 1, kEndsMisused, "the host touches device memory");
  float host = 0;
  EXPECT_EXIT(cudaMemcpyAsync(&host, &host, 4, cudaMemcpyDeviceToHost, stream_), kEndsMisused,
              "host memory where device memory is wanted");
  EXPECT_EXIT(cudaMemcpyAsync(x, x, 4, cudaMemcpyHostToDevice, stream_), kEndsMisused,
              "device memory where host memory is wanted");
  EXPECT_EXIT(cudaMemcpyAsync(x, &host, 64, cudaMemcpyHostToDevice, stream_), kEndsMisused,
              "that no block of device memory holds");
}

TEST_F(EmulatedDeviceDeathTest, EndsKernelsThatLeaveTheirBlock) {
  float* const x = floats(64);
  const auto write_at = [&](int64_t place) {
    run(1, [=] { x[place] = 0; });
    cudaStreamSynchronize(stream_);
    cudaFree(x);
  };
  EXPECT_EXIT(write_at(64), kEndsMisused, "device code leaves its block");
  EXPECT_EXIT(write_at(-1), kEndsMisused, "wrote beside a block");
  const auto use_freed = [&] {
    cudaFree(x);
    write_at(0);
  };
  EXPECT_EXIT(use_freed(), kEndsMisused, "device code leaves its block");
}

TEST_F(EmulatedDeviceDeathTest, EndsBarriersThatNotAllThreadsReach) {
  const auto half = [&](const std::function<void()>& barrier, unsigned threads) {
    run(1, [=] {
      if (threadIdx.x < threads) barrier();
    });
    cudaStreamSynchronize(stream_);
  };
  EXPECT_EXIT(half([] { __syncthreads(); }, 32), kEndsMisused,
              "threads of a block wait at different barriers");
  EXPECT_EXIT(half([] { __shfl_xor_sync(~0U, 1, 1); }, 16), kEndsMisused,
              "threads of a warp wait at different");
}

TEST_F(EmulatedDeviceDeathTest, EndsGridsThatNoDeviceTakes) {
  EXPECT_EXIT(run(int64_t{1} << 31, [] {}), kEndsMisused, "a grid of 2147483648 blocks");
}

/// The milliseconds between two events by the device's clock, with this order of work. One event is before
/// two kernels, the other after a third one, on another stream that waits for the two.
float milliseconds_of_three_kernels(unsigned order) {
  controls().order = order;
  cudaStream_t streams[2] = {};
  cudaEvent_t events[3] = {};
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (cudaEvent_t& event : events) cudaEventCreateWithFlags(&event, cudaEventDefault);
  const auto run_on = [](cudaStream_t stream) { cuda::run_grid(stream, 1, kThreads, 0, [] {}); };
  run_on(streams[1]);  // beside the others
  cudaEventRecord(events[0], streams[0]);
  run_on(streams[0]);
  run_on(streams[0]);
  cudaEventRecord(events[1], streams[0]);
  cudaStreamWaitEvent(streams[1], events[1], 0);
  run_on(streams[1]);
  cudaEventRecord(events[2], streams[1]);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events[0], events[2]), cudaErrorNotReady);
  cudaEventSynchronize(events[2]);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events[0], events[2]), cudaSuccess);
  for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
  for (const cudaEvent_t event : events) cudaEventDestroy(event);
  return milliseconds;
}

TEST_F(EmulatedDevice, HasAClockThatDoesNotDependOnTheOrderOfWork) {
  controls().work_seconds = 0.25;
  for (unsigned order = 0; order < 10; ++order) EXPECT_EQ(milliseconds_of_three_kernels(order), 750);
}

// The event is recorded behind a kernel, and again on an idle stream before the first record has run.
TEST_F(EmulatedDevice, KeepsEachRecordOfAnEventApart) {
  for (unsigned order = 0; order < 20; ++order) {
    controls().order = order;
    float *const x = floats(1), *const y = floats(1);
    cudaStream_t others[3] = {};
    for (cudaStream_t& stream : others) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    for (int i = 0; i < 20; ++i) run(1, [] {});
    run(1, [=] { *x = 1; });
    cudaEventRecord(event, stream_);
    cudaStreamWaitEvent(others[0], event, 0);
    cuda::run_grid(others[0], 1, kThreads, 0, [=] { *y = *x; });
    cudaEventRecord(event, others[1]);
    cudaStreamWaitEvent(others[2], event, 0);
    for (const cudaStream_t stream : others) EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(read(y, 1)[0], 1);
    for (const cudaStream_t stream : others) cudaStreamDestroy(stream);
    cudaEventDestroy(event);
  }
}

TEST_F(EmulatedDevice, TellsNoTimeOfEventsThatHaveNone) {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream_);
  cudaEventSynchronize(event);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle);
  cudaEventDestroy(event);
}

/// A second device besides the fixture's, which is device 0. It is the chosen one during its lifetime.
class SecondDevice {
 public:
  SecondDevice() {
    controls().devices = 2;
    cudaSetDevice(1);
    cudaMalloc(&block_, sizeof(float));
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  ~SecondDevice() {
    cudaStreamDestroy(stream_);
    cudaFree(block_);
    cudaSetDevice(0);
    controls().devices = 1;
  }
  float* x() const { return static_cast<float*>(block_); }
  cudaStream_t stream() const { return stream_; }

 private:
  void* block_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(EmulatedDevice, IsChosenByEachThread) {
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  controls().devices = 2;
  int count = 0;
  cudaGetDeviceCount(&count);
  EXPECT_EQ(count, 2);
  size_t all = 0, left[3] = {};
  floats(1000);
  cudaMemGetInfo(&left[0], &all);
  std::thread([&] {
    cudaMemGetInfo(&left[1], &all);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    cudaMemGetInfo(&left[2], &all);
  }).join();
  EXPECT_LE(left[0] + 4000, all);
  EXPECT_EQ(left[1], left[0]);
  EXPECT_EQ(left[2], all);
  controls().devices = 1;
}

TEST_F(EmulatedDevice, RunsTheWorkOfSeveral) {
  float* const x = floats(1);
  const SecondDevice second;
  float host = 0;
  for (unsigned order = 0; order < 10; ++order) {
    controls().order = order;
    cudaEvent_t event = nullptr;
    cudaSetDevice(0);
    run(1, [=] { *x = 1; });
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    EXPECT_EQ(cudaEventRecord(event, second.stream()), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
    cudaSetDevice(1);
    cudaStreamWaitEvent(second.stream(), event, 0);
    cuda::run_grid(second.stream(), 1, kThreads, 0, [to = second.x()] { *to = 2; });
    cudaMemcpyAsync(&host, second.x(), sizeof host, cudaMemcpyDeviceToHost, second.stream());
    cudaStreamSynchronize(second.stream());
    EXPECT_EQ(host, 2);
    EXPECT_EQ(read(x, 1)[0], 1);
    cudaEventDestroy(event);
  }
}

TEST_F(EmulatedDeviceDeathTest, EndsWorkThatUsesAnotherDevice) {
  float* const x = floats(1);
  const SecondDevice second;
  const auto write = [&] {
    cuda::run_grid(second.stream(), 1, kThreads, 0, [x] { *x = 1; });
    cudaStreamSynchronize(second.stream());
  };
  EXPECT_EXIT(write(), kEndsMisused, "leaves its block or its device");
  EXPECT_EXIT(cudaMemcpyAsync(second.x(), x, sizeof(float), cudaMemcpyDeviceToDevice, second.stream()),
              kEndsMisused, "cudaMemcpyAsync from: memory of device 0 used by device 1");
  EXPECT_EXIT(run(1, [] {}), kEndsMisused, "work for device 0 is launched while device 1 is chosen");
}

// A kernel whose threads read what others wrote without a barrier gives another result in each order.
TEST_F(EmulatedDevice, RunsThreadsInBothOrders) {
  float* const x = floats(kThreads);
  std::set<float> seen;
  for (const unsigned order : {2U, 3U}) {
    controls().order = order;
    cudaMemset(x, 0, kThreads * sizeof(float));
    cudaStreamSynchronize(nullptr);
    run(1, [=] {
      x[threadIdx.x] = 1;
      if (threadIdx.x == kThreads / 2)
        for (int i = 0; i < kThreads; ++i) x[kThreads / 2] += i == kThreads / 2 ? 0 : x[i];
    });
    seen.insert(read(x, kThreads)[kThreads / 2]);
  }
  constexpr int kHalf = kThreads / 2;
  EXPECT_EQ(seen, (std::set<float>{kHalf, kHalf + 1}));
}

}  // namespace
}  // namespace megalith::emulator
