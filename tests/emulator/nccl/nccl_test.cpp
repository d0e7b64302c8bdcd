// What the fake of NCCL promises. Ranks are threads here, each with a device of its own.
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nccl.h>

#include "tests/emulator/controls.h"
#include "tests/emulator/nccl/ring_sums.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

ncclUniqueId new_id() {
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  return id;
}

/// One rank: a device, a stream, a communicator.
class NcclRank {
 public:
  NcclRank(const ncclUniqueId& id, int rank, int size) {
    cudaSetDevice(rank);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.commName = "test";
    EXPECT_EQ(ncclCommInitRankConfig(&comm, size, id, rank, &config), ncclInProgress);
    EXPECT_EQ(await(comm), ncclSuccess);
  }
  ~NcclRank() {
    if (comm != nullptr) ncclCommAbort(comm);
    cudaStreamDestroy(stream);
    for (void* const block : blocks_) cudaFree(block);
  }
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  static ncclResult_t await(ncclComm_t comm) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      ncclCommGetAsyncError(comm, &state);
      std::this_thread::yield();
    }
    return state;
  }
  float* put(const std::vector<float>& values) {
    void* block = nullptr;
    cudaMalloc(&block, values.size() * sizeof(float));
    blocks_.push_back(block);
    cudaMemcpyAsync(block, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
    return static_cast<float*>(block);
  }
  std::vector<float> get(const float* from, size_t n) const {
    std::vector<float> values(n);
    cudaMemcpyAsync(values.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return values;
  }
  void sum(float* tensor, size_t n) const {
    EXPECT_EQ(ncclAllReduce(tensor, tensor, n, ncclFloat32, ncclSum, comm, stream), ncclInProgress);
  }

  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

 private:
  std::vector<void*> blocks_;
};

void run_ranks(int size, const std::function<void(NcclRank& rank, int number)>& body) {
  controls().devices = size;
  const ncclUniqueId id = new_id();
  std::vector<std::thread> threads;
  for (int number = 0; number < size; ++number)
    threads.emplace_back([&, number] {
      NcclRank rank(id, number, size);
      body(rank, number);
    });
  for (std::thread& thread : threads) thread.join();
  controls().devices = 1;
}

const auto kEndsMisused = testing::ExitedWithCode(kMisused);
using FakeNcclDeathTest = testing::Test;

// Ranks 1 + 2^-24 + 2^-24: in a ring that begins at 1 the small ones meet first.
TEST(FakeNccl, AddsAroundARing) {
  std::atomic<int> other = 0;
  run_ranks(3, [&](NcclRank& rank, int number) {
    const float mine = number == 0 ? 1 : 0x1p-24F;
    float* const tensor = rank.put({mine, mine, mine});
    rank.sum(tensor, 3);
    EXPECT_EQ(NcclRank::await(rank.comm), ncclSuccess);
    const std::vector<float> sums = rank.get(tensor, 3);
    EXPECT_EQ(sums, (std::vector<float>{1 + 0x1p-23F, 1, 1}));
    other += sums[0] != sums[1];
  });
  EXPECT_EQ(other, 3);
}

// The stream has the call only after the host has asked for the communicator's state until it was taken up.
TEST(FakeNccl, TakesUpWorkWhileTheHostAsks) {
  run_ranks(2, [](NcclRank& rank, int) {
    float* const tensor = rank.put({1});
    rank.sum(tensor, 1);
    EXPECT_EQ(rank.get(tensor, 1)[0], 1);
    EXPECT_EQ(NcclRank::await(rank.comm), ncclSuccess);
    EXPECT_EQ(rank.get(tensor, 1)[0], 2);
  });
}

// Both ranks send first: the stream of each waits for the other's receive, which is behind its send.
TEST(FakeNccl, BuffersNoMessage) {
  std::atomic<int> looked = 0;
  run_ranks(2, [&](NcclRank& rank, int number) {
    float *const out = rank.put({1.5F + static_cast<float>(number)}), *const in = rank.put({0});
    ncclSend(out, 1, ncclFloat32, 1 - number, rank.comm, rank.stream);
    NcclRank::await(rank.comm);
    ncclRecv(in, 1, ncclFloat32, 1 - number, rank.comm, rank.stream);
    NcclRank::await(rank.comm);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
    for (++looked; looked < 2;) std::this_thread::yield();  // an abort is an error of the other rank
    ncclCommAbort(rank.comm);
    EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    ncclConfig_t config{.blocking = 0};
    ncclCommInitRankConfig(&rank.comm, 1, new_id(), 0, &config);  // for ~NcclRank
  });
}

// As in an interleaved pipeline: rank 0 sends a second message before it receives the answer to the first
// one, and rank 1 answers before it receives the second one. Each direction has a stream. With a communicator
// for each, all arrive; in a single one the second send waits for a receive that is behind the answer, and
// the answer for a receive that is behind that send.
TEST(FakeNccl, RunsTheCallsOfACommunicatorOneAfterAnother) {
  const ncclUniqueId other_id = new_id();
  std::atomic<int> looked = 0;
  run_ranks(2, [&](NcclRank& forward, int number) {
    NcclRank backward(other_id, number, 2);
    float *const out = forward.put({7}), *const in = forward.put({0});
    const auto play = [&](ncclComm_t answers) {
      const auto send = [&](ncclComm_t comm, cudaStream_t stream) {
        EXPECT_EQ(ncclSend(out, 1, ncclFloat32, 1 - number, comm, stream), ncclInProgress);
        NcclRank::await(comm);
      };
      const auto receive = [&](ncclComm_t comm, cudaStream_t stream) {
        EXPECT_EQ(ncclRecv(in, 1, ncclFloat32, 1 - number, comm, stream), ncclInProgress);
        NcclRank::await(comm);
      };
      if (number == 0) {
        send(forward.comm, forward.stream);
        send(forward.comm, forward.stream);
        receive(answers, backward.stream);
      } else {
        receive(forward.comm, forward.stream);
        send(answers, backward.stream);
        receive(forward.comm, forward.stream);
      }
    };
    play(backward.comm);
    EXPECT_EQ(cudaStreamSynchronize(forward.stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(backward.stream), cudaSuccess);
    EXPECT_EQ(forward.get(in, 1)[0], 7);
    play(forward.comm);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(cudaStreamQuery(forward.stream), cudaErrorNotReady);
    for (++looked; looked < 2;) std::this_thread::yield();  // an abort is an error of the other rank
    ncclCommAbort(std::exchange(forward.comm, nullptr));
    EXPECT_EQ(cudaStreamSynchronize(forward.stream), cudaSuccess);
  });
}

TEST(FakeNccl, RunsTheMessagesOfAGroupTogether) {
  run_ranks(2, [](NcclRank& rank, int number) {
    float *const out = rank.put({1.5F + static_cast<float>(number)}), *const in = rank.put({0});
    ncclGroupStart();
    ncclSend(out, 1, ncclFloat32, 1 - number, rank.comm, rank.stream);
    ncclRecv(in, 1, ncclFloat32, 1 - number, rank.comm, rank.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
    NcclRank::await(rank.comm);
    EXPECT_EQ(rank.get(in, 1)[0], 2.5F - static_cast<float>(number));
  });
}

// Its memory is freed when the device is idle, but another communicator's call waits for rank 1 there.
TEST(FakeNccl, FreesAnAbortedCommunicatorWhenTheDeviceIsIdle) {
  const ncclUniqueId other_id = new_id();
  std::atomic<int> started = 0, ended = 0;
  run_ranks(2, [&](NcclRank& rank, int number) {
    NcclRank other(other_id, number, 2);
    for (++started; started < 2;) std::this_thread::yield();  // an abort is an error of a rank that starts
    if (number == 1) {
      while (ended < 1) std::this_thread::yield();
      return;
    }
    float* const tensor = other.put({1});
    other.sum(tensor, 1);
    NcclRank::await(other.comm);
    std::atomic<bool> freed = false;
    std::thread aborts([&] {
      ncclCommAbort(std::exchange(rank.comm, nullptr));
      freed = true;
    });
    // Too short a sleep only makes the test weaker: nothing is freed before the next abort.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(freed);
    ncclCommAbort(std::exchange(other.comm, nullptr));
    aborts.join();
    EXPECT_TRUE(freed);
    EXPECT_EQ(cudaStreamSynchronize(other.stream), cudaSuccess);
    ++ended;
  });
}

TEST(FakeNccl, RefusesCallsBeforeTheCommunicatorHasStarted) {
  ncclConfig_t config{.blocking = 0};
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, new_id(), 0, &config), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  for (int i = 0; i < 10; ++i) {
    ncclCommGetAsyncError(comm, &state);
    EXPECT_EQ(state, ncclInProgress);
  }
  cudaStream_t stream = nullptr;
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comm, stream), ncclInvalidUsage);
  ncclCommAbort(comm);
}

/// The work that a rank captures, as a graph.
cudaGraphExec_t captured(const NcclRank& rank, const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  work();
  EXPECT_EQ(cudaStreamEndCapture(rank.stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  return exec;
}

/// An all-reduce of one number that a rank captures.
cudaGraphExec_t captured_sum(const NcclRank& rank, float* tensor) {
  return captured(rank, [&] {
    rank.sum(tensor, 1);
    EXPECT_EQ(NcclRank::await(rank.comm), ncclSuccess);
  });
}

// 1 + 3 = 4, and 4 + 4 twice; then the host's call, and the graph once more. Messages wait for both ends.
TEST(FakeNccl, RepeatsCapturedCalls) {
  run_ranks(2, [](NcclRank& rank, int number) {
    float *const tensor = rank.put({number == 0 ? 1.0F : 3.0F}), *const in = rank.put({0});
    const cudaGraphExec_t sum = captured_sum(rank, tensor),
                          messages = captured(rank, [&] {
                            ncclGroupStart();
                            ncclSend(tensor, 1, ncclFloat32, 1 - number, rank.comm, rank.stream);
                            ncclRecv(in, 1, ncclFloat32, 1 - number, rank.comm, rank.stream);
                            EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
                            EXPECT_EQ(NcclRank::await(rank.comm), ncclSuccess);
                          });
    EXPECT_EQ(rank.get(tensor, 1)[0], number == 0 ? 1 : 3);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cudaGraphLaunch(sum, rank.stream), cudaSuccess);
    EXPECT_EQ(rank.get(tensor, 1)[0], 8);
    rank.sum(tensor, 1);
    NcclRank::await(rank.comm);
    EXPECT_EQ(cudaGraphLaunch(sum, rank.stream), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(messages, rank.stream), cudaSuccess);
    EXPECT_EQ(rank.get(in, 1)[0], 32);
    for (const cudaGraphExec_t exec : {sum, messages}) cudaGraphExecDestroy(exec);
  });
}

TEST(FakeNccl, StartsAndSplitsNoCommunicatorInACapture) {
  std::atomic<int> ended = 0;
  run_ranks(2, [&](NcclRank& rank, int) {
    const auto refuses = [&](const std::function<ncclResult_t(ncclConfig_t&)>& call) {
      cudaGraph_t graph = nullptr;
      ncclConfig_t config{.blocking = 0};
      EXPECT_EQ(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      EXPECT_EQ(call(config), ncclUnhandledCudaError);
      EXPECT_EQ(cudaStreamEndCapture(rank.stream, &graph), cudaErrorStreamCaptureInvalidated);
    };
    ncclComm_t made = nullptr;
    refuses([&](ncclConfig_t& config) { return ncclCommInitRankConfig(&made, 1, new_id(), 0, &config); });
    refuses([&](ncclConfig_t& config) { return ncclCommSplit(rank.comm, 0, 0, &made, &config); });
    EXPECT_EQ(made, nullptr);
    for (++ended; ended < 2;) std::this_thread::yield();  // one's abort must not reach the other's start
  });
}

// NCCL asks that a call is captured by all of its ranks or by none.
TEST_F(FakeNcclDeathTest, EndsRanksOfWhichOneCapturesACall) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run_ranks(2,
                        [](NcclRank& rank, int number) {
                          float* const tensor = rank.put({1});
                          if (number == 0)
                            rank.sum(tensor, 1);
                          else
                            cudaGraphLaunch(captured_sum(rank, tensor), rank.stream);
                          NcclRank::await(rank.comm);
                          rank.get(tensor, 1);
                        }),
              kEndsMisused, "disagree .NCCL would hang.: .*captured as call 1");
}

// NCCL waits for the end of these graphs, and so would the host for ever.
TEST_F(FakeNcclDeathTest, EndsAHostWhoseCommunicatorsEndBeforeTheGraphsOfTheirCalls) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto end = [](ncclResult_t (*ends)(ncclComm_t)) {
    run_ranks(2, [ends](NcclRank& rank, int) {
      captured_sum(rank, rank.put({1}));
      ends(rank.comm);
    });
  };
  EXPECT_EXIT(end(ncclCommFinalize), kEndsMisused, "finalized before the graphs of its calls are destroyed");
  EXPECT_EXIT(end(ncclCommAbort), kEndsMisused, "aborted before the graphs of its calls are destroyed");
}

TEST_F(FakeNcclDeathTest, EndsAHostThatAbortsACommunicatorWhileItCaptures) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run_ranks(2,
                        [](NcclRank& rank, int) {
                          cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal);
                          ncclCommAbort(rank.comm);
                        }),
              kEndsMisused, "aborted while its thread captures");
}

TEST_F(FakeNcclDeathTest, EndsRanksWhoseCallsDisagree) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run_ranks(2,
                        [](NcclRank& rank, int number) {
                          float* const tensor = rank.put({1, 2, 3});
                          rank.sum(tensor, number == 0 ? 2 : 3);
                          NcclRank::await(rank.comm);
                          rank.get(tensor, 3);
                        }),
              kEndsMisused, "disagree .NCCL would hang.: all_reduce of [23] elements of type 7");
}

TEST_F(FakeNcclDeathTest, EndsAHostThatDestroysACommunicatorBeforeItsWorkIsDone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(run_ranks(2,
                        [](NcclRank& rank, int) {
                          float* const tensor = rank.put({1});
                          rank.sum(tensor, 1);
                          ncclCommDestroy(rank.comm);
                        }),
              kEndsMisused, "destroyed before its work is done");
}

TEST(RingSums, RoundAtEveryRankAndLoseNan) {
  const uint16_t one = 0x3f80, small = 0x3b80;  // bf16: 1 and 2^-8
  const uint16_t inputs[3] = {one, small, small};
  uint16_t sum = 0;
  const auto at = [&](int i) { return reinterpret_cast<const std::byte*>(&inputs[i]); };
  RingSum ring{ncclBfloat16, ncclSum, {at(0), at(1), at(2)}, 1, 0};
  reduce_ring(ring, reinterpret_cast<std::byte*>(&sum));
  EXPECT_EQ(sum, one);  // 1 + 2^-8 is rounded to 1, twice
  ring.first = 1;
  reduce_ring(ring, reinterpret_cast<std::byte*>(&sum));
  EXPECT_EQ(sum, 0x3f81);  // 2^-7 + 1
  const float values[2] = {NAN, 2};
  float most = 0;
  reduce_ring(
      {ncclFloat32,
       ncclMax,
       {reinterpret_cast<const std::byte*>(&values[0]), reinterpret_cast<const std::byte*>(&values[1])},
       1,
       0},
      reinterpret_cast<std::byte*>(&most));
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace megalith::emulator
