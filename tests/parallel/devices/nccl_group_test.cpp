// Groups of devices over the fake of NCCL, without a communicator around them. Ranks are threads here, each
// with an emulated device of its own.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/ops/backend/nccl_plugin.h"
#include "libcore/ops/backend/recorded_work.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith {
namespace {

/// Waits as long as it takes.
class Patience final : public DeviceWatch {
 public:
  void await(const std::function<bool()>& done) override {
    while (!done()) std::this_thread::yield();
  }
  void give_up() noexcept override {}
};

struct GroupRank {
  GroupRank(const std::string& id, int rank, int size, bool in_rank_order)
      : backend(make_cuda_backend(rank)), stream(backend->make_stream()) {
    set_device_watch(*backend, &patience);
    group = start_nccl_group({.backend = *backend,
                              .watch = patience,
                              .name = "group",
                              .id = id,
                              .rank = rank,
                              .size = size,
                              .in_rank_order = in_rank_order});
    group->await_start();
  }
  ~GroupRank() {
    group->begin_finish();
    group->finish();
    set_device_watch(*backend, nullptr);
  }
  GroupRank(const GroupRank&) = delete;
  GroupRank& operator=(const GroupRank&) = delete;

  View put(const std::vector<float>& values) {
    memory.push_back(backend->allocate(values.size() * sizeof(float)));
    const View view{memory.back().data.get(), DType::kF32, {static_cast<int64_t>(values.size())}};
    stream.from_host(view, values.data());
    return view;
  }
  std::vector<float> get(const View& view) {
    std::vector<float> values(static_cast<size_t>(view.elements()));
    stream.to_host(values.data(), view);
    return values;
  }

  Patience patience;
  std::unique_ptr<Backend> backend;
  Stream stream;
  std::vector<Memory> memory;
  std::unique_ptr<DeviceGroup> group;
};

/// Runs `body` on a thread for each rank of a group that has started.
void run(int size, bool in_rank_order, const std::function<void(GroupRank&, int rank)>& body) {
  const test::OwnEmulatedGpus gpus(1, size);
  const std::string id = new_nccl_id();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      GroupRank one(id, rank, size, in_rank_order);
      body(one, rank);
    });
  for (std::thread& thread : threads) thread.join();
}

// 1 + 2^-24 + 2^-24 is 1 in rank order, as each of the small ones is rounded away.
TEST(NcclGroups, AddInRankOrderIfAsked) {
  for (const bool in_rank_order : {false, true})
    run(3, in_rank_order, [=](GroupRank& one, int rank) {
      const View tensor = one.put(std::vector<float>(3, rank == 0 ? 1.0F : 0x1p-24F));
      const DeviceCall call{.kind = DeviceCall::kSum, .in = tensor, .out = tensor};
      one.group->launch(one.stream, {&call, 1});
      const std::vector<float> sums = one.get(tensor);
      if (in_rank_order)
        EXPECT_EQ(sums, (std::vector<float>{1, 1, 1}));
      else
        EXPECT_EQ(sums[0], 1 + 0x1p-23F);
    });
}

TEST(NcclGroups, NameTheFirstCallThatIsNotDone) {
  std::atomic<bool> named = false;
  run(2, false, [&](GroupRank& one, int rank) {
    const View tensor = one.put({1, 2});
    const DeviceCall call{.kind = DeviceCall::kMax, .in = tensor, .out = tensor};
    EXPECT_FALSE(one.group->pending());
    while (rank == 1 && !named) std::this_thread::yield();
    EXPECT_EQ(one.group->launch(one.stream, {&call, 1}), 1U);
    EXPECT_EQ(one.group->launch(one.stream, {&call, 1}), 2U);
    if (rank == 0) {
      EXPECT_EQ(one.group->pending(), std::optional<uint64_t>(1));
      named = true;
    }
    one.stream.synchronize();
    EXPECT_FALSE(one.group->pending());
    EXPECT_EQ(one.group->problem(), "");
  });
}

TEST(NcclGroups, EndWithoutTheirWorkWhenAborted) {
  std::atomic<int> ready = 0;
  run(2, false, [&](GroupRank& one, int rank) {
    const View tensor = one.put({1, 2});
    const DeviceCall call{.kind = DeviceCall::kSum, .in = tensor, .out = tensor};
    if (rank == 0) one.group->launch(one.stream, {&call, 1});  // rank 1 never comes
    for (++ready; ready < 2;) std::this_thread::yield();       // an abort is an error of a rank that starts
    DeviceGroup* const own = one.group.get();
    own->abort({&own, 1});
    EXPECT_EQ(one.get(tensor), (std::vector<float>{1, 2}));
    EXPECT_ANY_THROW(one.group->launch(one.stream, {&call, 1}));
  });
}

// A recorded call has no turn, each repetition has one. When the group ends, its graphs are of no use.
TEST(NcclGroups, RepeatRecordedCalls) {
  for (const bool in_rank_order : {false, true})
    run(2, in_rank_order, [](GroupRank& one, int) {
      auto& recorder = dynamic_cast<WorkRecorder&>(*one.backend);
      const View tensor = one.put({1, 2});
      const DeviceCall call{.kind = DeviceCall::kSum, .in = tensor, .out = tensor};
      EXPECT_EQ(one.group->launch(one.stream, {&call, 1}), 1U);
      const WorkRecorder::Recorded recorded = recorder.record_work(one.stream, [&] {
        EXPECT_EQ(one.group->launch(one.stream, {&call, 1}), 0U);
      });
      EXPECT_EQ(one.get(tensor), (std::vector<float>{2, 4}));
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(recorder.repeat(one.stream, recorded));
      EXPECT_EQ(one.group->launch(one.stream, {&call, 1}), 4U);
      EXPECT_EQ(one.get(tensor), (std::vector<float>{16, 32}));
      EXPECT_FALSE(one.group->pending());
      one.group->begin_finish();
      EXPECT_FALSE(recorder.repeat(one.stream, recorded));
    });
}

// The host may ask for pending calls while it records, when CUDA allows no question about events.
TEST(NcclGroups, AnswerWhileTheyAreRecorded) {
  run(2, false, [](GroupRank& one, int) {
    auto& recorder = dynamic_cast<WorkRecorder&>(*one.backend);
    const View tensor = one.put({1});
    const DeviceCall call{.kind = DeviceCall::kSum, .in = tensor, .out = tensor};
    one.group->launch(one.stream, {&call, 1});
    const WorkRecorder::Recorded recorded = recorder.record_work(one.stream, [&] {
      one.group->launch(one.stream, {&call, 1});
      EXPECT_EQ(one.group->pending(), std::optional<uint64_t>(1));
    });
    EXPECT_TRUE(recorder.repeat(one.stream, recorded));
    EXPECT_EQ(one.get(tensor), std::vector<float>{4});
  });
}

// A rank that fails while it records aborts its groups, which ends the capture.
TEST(NcclGroups, AreAbortedWhileTheyAreRecorded) {
  std::atomic<int> launched = 0;
  run(2, false, [&](GroupRank& one, int) {
    auto& recorder = dynamic_cast<WorkRecorder&>(*one.backend);
    const View tensor = one.put({1});
    const DeviceCall call{.kind = DeviceCall::kSum, .in = tensor, .out = tensor};
    EXPECT_THROW(recorder.record_work(one.stream,
                                      [&] {
                                        one.group->launch(one.stream, {&call, 1});
                                        // An abort is an error of a rank that still calls.
                                        for (++launched; launched < 2;) std::this_thread::yield();
                                        DeviceGroup* const own = one.group.get();
                                        own->abort({&own, 1});
                                        fail(ErrorKind::kComm, "lost");
                                      }),
                 Error);
    EXPECT_EQ(one.get(tensor), std::vector<float>{1});  // the stream works
  });
}

TEST(NcclGroups, TellTheVersionAndTheDevicesAddress) {
  const test::OwnEmulatedGpus gpus(1, 4);
  EXPECT_EQ(nccl_version(), "2.28.9");
  EXPECT_EQ(cuda_devices(), 4);
  EXPECT_EQ(cuda_device_address(3), "0000:03:00.0");
  const test::Variable visible("CUDA_VISIBLE_DEVICES", "2,0");
  EXPECT_EQ(cuda_devices(), 2);
  EXPECT_EQ(cuda_device_address(0), "0000:02:00.0");
}

}  // namespace
}  // namespace megalith
