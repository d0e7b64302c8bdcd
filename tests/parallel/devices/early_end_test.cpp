// Ranks over devices of which one dies, hangs, fails or disagrees: the others end soon, and name it. They are
// processes, each with an emulated device, over the fake of NCCL (tests/emulator/nccl).
#include "libcore/parallel/devices/early_end.h"

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/ops/backend/recorded_work.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/linear.h"
#include "tests/parallel/devices/device_rank.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/processes.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;
using test::Variable;

/// Sums over and over. At the end of a round the host waits for its device.
void reduce_without_end(Communicator& gloo, Processes* processes = nullptr) {
  DeviceRank rank(gloo);
  const View tensor = rank.zeros(DType::kF32, 100);
  if (processes) processes->ready();
  for (;;) {
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  }
}

/// Sums eight times in a group, beside which there is another one.
void reduce_beside_a_pair(Communicator& gloo) {
  DeviceRank rank(gloo);
  const auto pair = rank.world->split("pair", 0, gloo.rank());
  const View tensor = rank.zeros(DType::kF32, 100);
  for (int call = 0; call < 8; ++call) {
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  }
}

/// The rank ended with the code of kComm, not later than this after all were connected, and its error has
/// these parts.
void expect_end(const RankEnd& end, double seconds, const std::vector<std::string>& parts) {
  EXPECT_TRUE(end.is_exit(75)) << end.status << end.error;
  EXPECT_LT(end.seconds, seconds);
  for (const std::string& part : parts) EXPECT_TRUE(contains(end.error, part)) << part << "\n" << end.error;
}

/// Lets a rank write to this file instead of stderr.
void redirect_stderr(const std::string& file) {
  dup2(open(file.c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
}

TEST_F(DeviceRanks, ARankThatIsKilledEndsTheOthers) {
  for (const int last : {1, 2, 3}) {
    Processes processes(last + 1);
    const auto ends = processes.run([&](Communicator& gloo) { reduce_without_end(gloo, &processes); },
                                    [&] { processes.signal(last, SIGKILL); });
    for (int rank = 0; rank < last; ++rank)
      expect_end(
          ends[static_cast<size_t>(rank)], 5,
          {concat("world: rank ", rank, " on host h", rank, ": all_reduce, call "),
           concat("the connection to rank ", last, " on host h", last, " is lost: its process ended")});
  }
}

// The rank dies when it calls NCCL: at its first call, while others are ahead of it, or later.
TEST_F(DeviceRanks, ARankThatDiesInACallEndsTheOthers) {
  for (const int call : {0, 1, 7}) {
    const Variable fault("MEGALITH_NCCL_FAULT", concat("kill:1:", call));
    const auto ends = Processes(3).run([](Communicator& gloo) { reduce_without_end(gloo); });
    EXPECT_TRUE(ends[1].is_signal(SIGKILL)) << ends[1].status;
    for (const size_t rank : {size_t{0}, size_t{2}})
      expect_end(ends[rank], 5, {"connection", "rank 1 on host h1"});
  }
}

// The device of each of the others waits in two groups, on two streams. Neither group could end alone, as
// CUDA frees NCCL's memory only when the device has done all its work.
TEST_F(DeviceRanks, GroupsThatWaitAtOnceEndTogether) {
  Processes processes(3);
  const auto body = [&](Communicator& gloo) {
    DeviceRank rank(gloo);
    const auto data = rank.world->split("data", 0, gloo.rank());
    Stream low = rank.backend->make_queue_stream();
    const View tensor = rank.zeros(DType::kF32, 100), grads = rank.zeros(DType::kF32, 50);
    processes.ready();
    if (gloo.rank() == 1) processes.await_meanwhile();
    data->all_reduce(low, grads, Reduce::kSum);
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  };
  const auto ends = processes.run(body, [&] {
    processes.signal(1, SIGKILL);
    processes.await_end(1);
  });
  for (const size_t rank : {size_t{0}, size_t{2}})
    expect_end(ends[rank], 5, {": all_reduce, call 1", "the connection to rank 1 on host h1 is lost"});
}

// Rank 0's host is in a call that does not return, as that of a driver whose queue is full.
TEST_F(DeviceRanks, AHostInACallOfTheDriverEndsToo) {
  const test::TempDir dir;
  const Variable fault("MEGALITH_NCCL_FAULT", "block:0:1"), struck("MEGALITH_NCCL_STRUCK", dir / "struck");
  Processes processes(2);
  const auto body = [&](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View tensor = rank.zeros(DType::kF32, 100);
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
    if (gloo.rank() == 0) redirect_stderr(dir / "stderr");
    processes.ready();
    if (gloo.rank() == 1) processes.await_meanwhile();
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
  };
  const auto ends = processes.run(body, [&] {
    EXPECT_TRUE(test::await_file(dir / "struck"));
    processes.signal(1, SIGKILL);
    processes.await_end(1);
  });
  expect_end(ends[0], 5, {});
  const std::string said = read_file(dir / "stderr");
  EXPECT_TRUE(
      contains(said, "error: rank 0 on host h0: stopped: the connection to rank 1 on host h1 is lost"))
      << said;
  EXPECT_TRUE(contains(said, "a call of the CUDA driver does not end")) << said;
}

TEST_F(DeviceRanks, AStoppedRankIsNamedAfterTheTimeout) {
  Processes processes(3, 1500ms);
  const auto ends = processes.run([&](Communicator& gloo) { reduce_without_end(gloo, &processes); },
                                  [&] {
                                    processes.signal(1, SIGSTOP);
                                    for (const int rank : {0, 2}) processes.await_end(rank);
                                    processes.signal(1, SIGKILL);
                                  });
  for (const size_t rank : {size_t{0}, size_t{2}})
    expect_end(
        ends[rank], 1.5 + 5,
        {"all_reduce, call ", "timed out after 1.5 s waiting for rank 1 on host h1, which does not answer"});
}

TEST_F(DeviceRanks, ARankThatDoesSomethingElseIsNamedAfterTheTimeout) {
  Processes processes(3, 1500ms);
  const auto body = [&](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View tensor = rank.zeros(DType::kF32, 100);
    processes.ready();
    if (gloo.rank() == 2) {
      processes.await_meanwhile();
      gloo.exchange("");
    }
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  };
  const auto ends = processes.run(body, [&] {
    for (const int rank : {0, 1}) processes.await_end(rank);
  });
  for (const size_t rank : {size_t{0}, size_t{1}})
    expect_end(ends[rank], 1.5 + 5, {"waiting for rank 2 on host h2, which does not wait for its device"});
  expect_end(ends[2], 10, {"exchange, call ", "stopped"});
}

/// Three ranks sum twice in the world, but for rank 1, which gathers in place of the second sum: in this
/// group of all ranks if there is one. NCCL itself would wait for ever.
std::vector<RankEnd> ends_of_different_calls(const std::optional<GroupName>& name = {}) {
  const Variable hang("MEGALITH_NCCL_DISAGREE", "hang");
  return Processes(3, 1500ms).run([&](Communicator& gloo) {
    DeviceRank rank(gloo);
    const auto group = name ? rank.world->split(*name, 0, gloo.rank()) : nullptr;
    const View tensor = rank.zeros(DType::kF32, 96), part = rank.zeros(DType::kF32, 32);
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    if (gloo.rank() == 1)
      (group ? *group : *rank.world).all_gather(rank.compute, tensor, part);
    else
      rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  });
}

TEST_F(DeviceRanks, ARankWhoseCallDiffersIsNamedAfterTheTimeout) {
  for (const RankEnd& end : ends_of_different_calls())
    expect_end(end, 1.5 + 5,
               {"rank 1 on host h1 waits in all_gather of 32 fp32, call 2",
                "in all_reduce of 96 fp32 (sum), call 2; all ranks of a group have to make the same calls"});
}

// Rank 1 begins to wait when rank 0 has waited for more than half of the timeout, but not all of it.
TEST_F(DeviceRanks, RanksCompareTheirCallsForHalfTheTimeout) {
  const Variable hang("MEGALITH_NCCL_DISAGREE", "hang");
  Processes processes(2, 3s);
  const auto ends = processes.run([](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View tensor = rank.zeros(DType::kF32, 8);
    if (gloo.rank() == 1) std::this_thread::sleep_for(2250ms);
    if (gloo.rank() == 1)
      rank.world->broadcast(rank.compute, tensor, 0);
    else
      rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  });
  expect_end(ends[0], 3 + 1.5 + 5,
             {"world: rank 0 on host h0: all_reduce, call 1: stopped: ", "calls of devices: ",
              "timed out after 1.5 s waiting for rank 1 on host h1"});
}

TEST_F(DeviceRanks, ACallThatNoDeviceEndsIsNamedAfterTheTimeout) {
  const Variable fault("MEGALITH_NCCL_FAULT", "hang:1:3");
  Processes processes(2, 1500ms);
  for (const RankEnd& end : processes.run([](Communicator& gloo) { reduce_without_end(gloo); }))
    expect_end(end, 1.5 + 5, {"all_reduce, call 4", "timed out after 1.5 s"});
}

/// Sums once, records a sum, and repeats it: the first repetition is the group's second call.
void repeat_a_sum(Communicator& gloo) {
  DeviceRank rank(gloo);
  const View tensor = rank.zeros(DType::kF32, 100);
  const auto sum = [&] { rank.world->all_reduce(rank.compute, tensor, Reduce::kSum); };
  sum();
  auto& recorder = dynamic_cast<WorkRecorder&>(*rank.backend);
  const WorkRecorder::Recorded recorded = recorder.record_work(rank.compute, sum);
  for (int i = 0; i < 4; ++i) {
    recorder.repeat(rank.compute, recorded);
    rank.compute.synchronize();
  }
}

TEST_F(DeviceRanks, ARepeatedCallThatNoDeviceEndsIsNamedAfterTheTimeout) {
  expect_fine(2, repeat_a_sum);
  const Variable fault("MEGALITH_NCCL_FAULT", "hang:1:2");
  Processes processes(2, 1500ms);
  for (const RankEnd& end : processes.run(repeat_a_sum))
    expect_end(end, 1.5 + 5, {"replay, call 3", "timed out after 1.5 s"});
}

// It dies when it launches a graph.
TEST_F(DeviceRanks, ARankThatIsKilledInARepeatedCallEndsTheOthers) {
  const Variable fault("MEGALITH_NCCL_FAULT", "kill:1:2");
  const auto ends = Processes(2).run(repeat_a_sum);
  expect_end(ends[0], 5,
             {"world: rank 0 on host h0: replay, call 3",
              "the connection to rank 1 on host h1 is lost: its process ended"});
}

// The rank aborts its groups in the middle of a capture, which ends it.
TEST_F(DeviceRanks, WhatNcclRefusesWhileItIsRecordedEndsAllRanks) {
  const Variable fault("MEGALITH_NCCL_FAULT", "refuse:1:1");
  for (const RankEnd& end : Processes(2).run(repeat_a_sum))
    expect_end(end, 5,
               {"world: rank 1 on host h1: all_reduce, call 2: enqueue: NCCL 2.28.9: internal error"});
}

TEST_F(DeviceRanks, WhatNcclReportsEndsAllRanks) {
  const Variable fault("MEGALITH_NCCL_FAULT", "remote:1:5");
  for (const RankEnd& end : Processes(3).run([](Communicator& gloo) { reduce_without_end(gloo); }))
    expect_end(end, 5,
               {"NCCL 2.28.9: remote process exited or there was a network error (error 6", "NCCL_DEBUG=WARN",
                "rank 1 on host h1: all_reduce, call 6"});
}

TEST_F(DeviceRanks, WhatNcclRefusesEndsAllRanks) {
  const std::pair<const char*, const char*> cases[] = {
      {"refuse:1:5", "world: rank 1 on host h1: all_reduce, call 6: enqueue: NCCL 2.28.9: internal error"},
      {"refuse:1:0:start", "world: rank 1 on host h1: start: start: NCCL 2.28.9: internal error"},
      {"refuse:1:1:start", "pair: world: rank 1 on host h1: split: split: NCCL 2.28.9: internal error"}};
  for (const auto& [fault, words] : cases) {
    const Variable set("MEGALITH_NCCL_FAULT", fault);
    SCOPED_TRACE(fault);
    for (const RankEnd& end : Processes(2).run(reduce_beside_a_pair)) expect_end(end, 5, {words});
  }
}

// The work is done by then, so no rank fails.
TEST_F(DeviceRanks, WhatNcclRefusesAtTheEndIsTold) {
  const Variable fault("MEGALITH_NCCL_FAULT", "refuse:1:0:end");
  const test::TempDir dir;
  expect_fine(2, [&](Communicator& gloo) {
    if (gloo.rank() == 1) redirect_stderr(dir / "stderr");
    reduce_beside_a_pair(gloo);
  });
  const std::string said = read_file(dir / "stderr");
  EXPECT_TRUE(contains(said, "error: pair: rank 1 on host h1: end: end: NCCL 2.28.9: internal error"))
      << said;
}

TEST_F(DeviceRanks, ARankThatThrowsWakesTheOthers) {
  const auto ends = Processes(3).run([](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View tensor = rank.zeros(DType::kF32, 8);
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    if (gloo.rank() == 1) fail(ErrorKind::kData, "a bad file");
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  });
  EXPECT_TRUE(ends[1].is_exit(65)) << ends[1].status << ends[1].error;
  for (const size_t rank : {size_t{0}, size_t{2}}) expect_end(ends[rank], 5, {"rank 1 on host h1 failed"});
}

// NCCL's groups end together, so a rank that ends early waits for the others as long as they wait for it.
TEST_F(DeviceRanks, ARankThatHasEndedIsNamedAfterTheTimeout) {
  Processes processes(2, 1500ms);
  const auto ends = processes.run([](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View tensor = rank.zeros(DType::kF32, 8);
    if (gloo.rank() == 1) return;
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  });
  expect_end(
      ends[0], 1.5 + 5,
      {"rank 1 on host h1 waits in no call of it, rank 0 on host h0 in all_reduce of 8 fp32 (sum), call 1"});
}

TEST_F(DeviceRanks, ADelayedRankIsWaitedFor) {
  const Variable fault("MEGALITH_NCCL_FAULT", "delay:1:50");
  expect_fine(3, [](Communicator& gloo) {
    DeviceRank rank(gloo);
    Tensor one(DType::kF32, 1);
    one.set(0, 1);
    const View tensor = rank.put(one);
    for (int i = 0; i < 3; ++i) rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    EXPECT_EQ(rank.get(tensor).get(0), 27);
  });
}

// To free memory, CUDA waits for all of the device's work, also for what waits for rank 1, which waits here.
// The kernel itself has millions of threads, too many for an emulated device: the ranks end before it runs.
TEST_F(DeviceRanks, AKernelMayNeedMoreMemoryWhileTheDeviceWaits) {
  Processes processes(2, 5s);
  const auto body = [&](Communicator& gloo) {
    constexpr int64_t kFew = 64, kMany = cuda::kMinWorkspace / (2 * sizeof(float)) + 64;
    ASSERT_GT(cuda::column_sums_bytes(1, kMany), cuda::kMinWorkspace);
    DeviceRank rank(gloo);
    const auto data = rank.world->split("data", 0, gloo.rank());
    Stream low = rank.backend->make_queue_stream();
    const View grads = rank.zeros(DType::kF32, 8), dy = rank.zeros(DType::kBf16, kMany),
               sums = rank.zeros(DType::kF32, kMany);
    if (gloo.rank() == 0) {
      data->all_reduce(low, grads, Reduce::kSum);
      for (const int64_t columns : {kFew, kMany})
        rank.backend->run(rank.compute, BiasGrad{.dbias = View{sums.data, DType::kF32, {columns}},
                                                 .dy = View{dy.data, DType::kBf16, {1, columns}}});
    }
    gloo.exchange("");
    processes.ready();
    processes.await_meanwhile();  // until both have their messages
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  };
  const auto ends = processes.run(body, [] {});
  for (const RankEnd& end : ends) EXPECT_TRUE(end.is_exit(0)) << end.status << end.error;
}

// A save's thread copies what it writes. It could not look at groups that the rank's own thread changes.
TEST_F(DeviceRanks, AnotherThreadMayWaitButNotCall) {
  expect_fine(2, [](Communicator& gloo) {
    DeviceRank rank(gloo);
    const Tensor sent = tensor_of(DType::kF32, gloo.rank(), 8);
    const View there = rank.put(sent);
    Stream other = rank.backend->make_queue_stream();
    other.wait(rank.compute.record());
    std::thread([&] {
      Tensor got(DType::kF32, 8);
      other.to_host(got.view().data, there);
      EXPECT_EQ(got, sent);
      EXPECT_THROW(rank.world->all_reduce(other, there, Reduce::kSum), Error);
    }).join();
  });
}

// ---- groups of the same ranks, which share one of NCCL

// The group of NCCL counts six calls before, but the communicator none. Rank 0 may learn that rank 1 has died
// when it still waits for the call before.
TEST_F(DeviceRanks, CallsOfEqualGroupsKeepTheirNames) {
  const Variable fault("MEGALITH_NCCL_FAULT", "kill:1:7");
  const auto ends = Processes(2).run([](Communicator& gloo) {
    DeviceRank rank(gloo);
    const auto data = rank.world->split({"data", GroupRole::kData}, 0, gloo.rank());
    const View tensor = rank.zeros(DType::kF32, 8);
    for (int call = 0; call < 6; ++call) rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
    gloo.exchange("");
    for (int call = 0; call < 2; ++call) data->all_reduce(rank.compute, tensor, Reduce::kSum);
    rank.compute.synchronize();
  });
  expect_end(ends[0], 5, {"rank 1 on host h1 is lost"});
  const std::string call = "data: rank 0 on host h0: all_reduce, call ";
  EXPECT_TRUE(contains(ends[0].error, call + "1: ") || contains(ends[0].error, call + "2: "))
      << ends[0].error;
}

TEST_F(DeviceRanks, CallsOfEqualGroupsThatDifferAreNamed) {
  for (const RankEnd& end : ends_of_different_calls(GroupName{"data", GroupRole::kData}))
    expect_end(end, 1.5 + 5,
               {"timed out: world: rank 1 on host h1 waits in all_gather of 32 fp32 of data, call 1, rank 0 "
                "on host h0 in all_reduce of 96 fp32 (sum), call 2"});
}

}  // namespace
}  // namespace megalith
