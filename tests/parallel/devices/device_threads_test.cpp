// The communicator over devices beside that of threads: each rank has an emulated device of the one process.
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/devices/device_comm.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/parallel/failed_calls.h"
#include "tests/support/emulated_cuda.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

/// A rank with a device and a tensor there.
struct ThreadRank {
  explicit ThreadRank(Communicator& threads)
      : backend(make_cuda_backend(threads.rank())), world(make_device_comm(threads, *backend)) {}
  void sum() {
    world->all_reduce(compute, tensor, Reduce::kSum);
    compute.synchronize();
  }
  std::unique_ptr<Backend> backend;
  Stream compute = backend->make_stream();
  Memory memory = backend->allocate(8 * sizeof(float));
  View tensor{memory.data.get(), DType::kF32, {8}};
  std::unique_ptr<Communicator> world;
};

class DeviceThreads : public testing::Test {
 protected:
  /// The error that three ranks end with.
  static std::string error_of(const std::function<void(ThreadRank&, int rank)>& body) {
    try {
      run_thread_ranks(3, {.timeout = 1500ms}, [&](Communicator& threads) {
        ThreadRank rank(threads);
        rank.sum();
        body(rank, threads.rank());
      });
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  static void expect(const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  const test::OwnEmulatedGpus gpus_{1, 3};
};

TEST_F(DeviceThreads, AddAcrossTheirDevices) {
  EXPECT_EQ(error_of([](ThreadRank& rank, int number) {
              const float mine[8] = {static_cast<float>(1 << number)};
              rank.compute.from_host(rank.tensor, mine);
              rank.sum();
              float all[8] = {};
              rank.compute.to_host(all, rank.tensor);
              EXPECT_EQ(all[0], 7);
            }),
            "");
}

TEST_F(DeviceThreads, NameTheRankThatDoesSomethingElse) {
  FailedCalls calls;
  const std::string error = error_of([&](ThreadRank& rank, int number) {
    if (number == 2) {
      calls.await(2);
      rank.world->exchange("");
    }
    calls.make([&] { rank.sum(); });
  });
  expect(
      error,
      ": all_reduce, call 2: timed out after 1.5 s waiting for rank 2, which does not wait for its device");
}

// Its groups end with those of the others, for which it waits.
TEST_F(DeviceThreads, NameTheRankThatHasEnded) {
  const std::string error = error_of([](ThreadRank& rank, int number) {
    if (number != 2) rank.sum();
  });
  expect(error, "world: rank 2 waits in no call of it, rank 0 in all_reduce of 8 fp32 (sum), call 2");
}

TEST_F(DeviceThreads, EndWithTheErrorOfTheRankThatFails) {
  const std::string error = error_of([](ThreadRank& rank, int number) {
    if (number == 1) fail(ErrorKind::kData, "a bad file");
    rank.sum();
  });
  expect(error, "rank 1: a bad file");
}

}  // namespace
}  // namespace megalith
