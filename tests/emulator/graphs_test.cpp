// Capture and replay on the emulated device: what is repeated, and the calls that CUDA refuses meanwhile.
#include "tests/emulator/graphs.h"

#include <functional>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "tests/emulator/controls.h"

namespace megalith::emulator {
namespace {

/// Two streams, and device memory of two numbers.
class EmulatedGraphs : public testing::Test {
 protected:
  EmulatedGraphs() {
    for (cudaStream_t* const made : {&stream_, &other_})
      cudaStreamCreateWithFlags(made, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event_, cudaEventDisableTiming);
    void* block = nullptr;
    cudaMalloc(&block, 2 * sizeof(float));
    x_ = static_cast<float*>(block);
    cudaMemset(x_, 0, 2 * sizeof(float));
    cudaStreamSynchronize(nullptr);
  }
  ~EmulatedGraphs() override {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    cudaEventDestroy(event_);
    for (const cudaStream_t made : {stream_, other_}) cudaStreamDestroy(made);
    cudaFree(x_);
    controls().order = 1;
  }
  /// x = x * factor + more.
  void step(cudaStream_t stream, float factor, float more, int place = 0) {
    cuda::run_grid(stream, 1, 32, 0, [x = x_ + place, factor, more] {
      if (threadIdx.x == 0) *x = *x * factor + more;
    });
  }
  /// Makes `to` wait for the work of `from`.
  cudaError_t join(cudaStream_t from, cudaStream_t to) {
    const cudaError_t status = cudaEventRecord(event_, from);
    return status == cudaSuccess ? cudaStreamWaitEvent(to, event_, 0) : status;
  }
  void begin() { ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess); }
  /// Ends the capture of work that can be repeated.
  void end() {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec_, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
  }
  cudaError_t end_badly() {
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(graph, nullptr);
    return status;
  }
  std::vector<float> read() {
    std::vector<float> values(2);
    cudaMemcpyAsync(values.data(), x_, 2 * sizeof(float), cudaMemcpyDeviceToHost, stream_);
    cudaStreamSynchronize(stream_);
    return values;
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  float* x_ = nullptr;
};

TEST_F(EmulatedGraphs, RunNothingUntilTheyAreLaunchedAndThenAsOften) {
  begin();
  step(stream_, 2, 1);
  end();
  EXPECT_EQ(read()[0], 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  EXPECT_EQ(read()[0], 7);  // 1, 3, 7
  step(stream_, 0, 5);
  ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
  EXPECT_EQ(read()[0], 11);
}

// What two streams did keeps the order that events gave it, and only that.
TEST_F(EmulatedGraphs, KeepTheOrderOfEvents) {
  begin();
  step(stream_, 1, 1);
  ASSERT_EQ(join(stream_, other_), cudaSuccess);
  step(other_, 10, 0);
  step(stream_, 1, 1, 1);
  ASSERT_EQ(join(other_, stream_), cudaSuccess);
  step(stream_, 1, 2);
  end();
  for (const unsigned order : {1U, 2U, 3U, 4U}) {
    controls().order = order;
    step(stream_, 0, 0);
    step(stream_, 0, 0, 1);
    ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
    EXPECT_EQ(read(), (std::vector<float>{12, 1})) << order;
  }
}

TEST_F(EmulatedGraphs, RefuseWorkThatTheirStreamDoesNotWaitFor) {
  begin();
  ASSERT_EQ(join(stream_, other_), cudaSuccess);
  step(other_, 1, 1);
  EXPECT_EQ(end_badly(), cudaErrorStreamCaptureUnjoined);
  step(other_, 1, 1);  // both streams work again
  ASSERT_EQ(join(other_, stream_), cudaSuccess);
  EXPECT_EQ(read()[0], 1);
}

// The graph would not repeat that work.
TEST_F(EmulatedGraphs, RefuseToWaitForEarlierWork) {
  cudaEventRecord(event_, other_);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end_badly(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(EmulatedGraphs, RefuseCallsThatWaitOrAllocate) {
  void* block = nullptr;
  float host = 0;
  const std::vector<std::function<cudaError_t()>> calls = {
      [&] { return cudaStreamSynchronize(stream_); },
      [&] { return cudaStreamQuery(stream_); },
      [&] { return cudaMalloc(&block, 4); },
      [&] { return cudaMallocHost(&block, 4); },
      [&] { return cudaFree(x_); },
      [&] { return cudaEventQuery(event_); },
      [&] { return cudaEventSynchronize(event_); },
      [&] { return cudaFreeHost(&host); },
      [&] { return cudaHostUnregister(&host); },
      [&] { return cudaHostRegister(&host, sizeof host, cudaHostRegisterDefault); },
      [&] { return cudaMemset(x_, 0, 4); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    begin();
    EXPECT_EQ(calls[i](), cudaErrorStreamCaptureUnsupported) << i;
    EXPECT_EQ(end_badly(), cudaErrorStreamCaptureInvalidated) << i;
    EXPECT_EQ(read()[0], 0) << i;
  }
}

TEST_F(EmulatedGraphs, RefuseToWaitForTheirOwnEvents) {
  const std::vector<std::function<cudaError_t()>> calls = {[&] { return cudaEventSynchronize(event_); },
                                                           [&] { return cudaEventQuery(event_); }};
  for (const auto& call : calls) {
    begin();
    step(stream_, 1, 1);
    cudaEventRecord(event_, stream_);
    EXPECT_EQ(call(), cudaErrorCapturedEvent);
    EXPECT_EQ(end_badly(), cudaErrorStreamCaptureInvalidated);
  }
}

TEST_F(EmulatedGraphs, EndWhereTheyBeganAndOnce) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaErrorIllegalState);
  cudaError_t elsewhere = cudaSuccess;
  std::thread([&] { elsewhere = cudaStreamEndCapture(stream_, &graph); }).join();
  EXPECT_EQ(elsewhere, cudaErrorStreamCaptureWrongThread);
  ASSERT_EQ(join(stream_, other_), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph), cudaErrorStreamCaptureUnmatched);
  ASSERT_EQ(join(other_, stream_), cudaSuccess);
  end();
}

TEST_F(EmulatedGraphs, RefuseQuestionsOfOtherThreadsToTheirStream) {
  begin();
  std::thread([&] { EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported); }).join();
  EXPECT_EQ(end_badly(), cudaErrorStreamCaptureInvalidated);
}

// The mode of a capture forbids only its own thread what could disturb it.
TEST_F(EmulatedGraphs, LetOtherThreadsAllocate) {
  begin();
  std::thread([] {
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 4), cudaSuccess);
    cudaFree(block);
  }).join();
  step(stream_, 1, 1);
  end();
  EXPECT_EQ(read()[0], 0);
}

TEST_F(EmulatedGraphs, AreCounted) {
  const CallCounts before = controls().counts;
  begin();
  step(stream_, 1, 1);
  end();
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(exec_, stream_);
  EXPECT_EQ(controls().counts.captures, before.captures + 1);
  EXPECT_EQ(controls().counts.graph_launches, before.graph_launches + 2);
  EXPECT_EQ(controls().counts.kernels, before.kernels + 1);
}

}  // namespace
}  // namespace megalith::emulator
