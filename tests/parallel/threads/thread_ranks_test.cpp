// How runs of ranks that are threads end: with errors, signals, timeouts and ranks that have left.
#include "tests/parallel/threads/thread_ranks.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/parallel/run_watch.h"
#include "libcore/parallel/threads/thread_group.h"
#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;
using test::Failure;
using test::failure_here;
using test::failure_of;
using test::Link;
using test::numbered;

TEST(ThreadRanks, ThrowTheFirstErrorWithItsRankAndKind) {
  std::atomic<int> stopped{0};
  const Failure failure = failure_of(4, {}, [&](Communicator& world) {
    Rank rank;
    const auto pair = world.split("pair", world.rank() / 2, world.rank());
    if (world.rank() == 3) fail(ErrorKind::kIo, "the disk is full");
    Tensor tensor(DType::kF32, 3);
    const Failure mine = failure_here([&] {
      if (world.rank() == 2) pair->all_reduce(rank.compute, tensor.view(), Reduce::kSum);
      world.exchange({});
    });
    EXPECT_EQ(mine.kind, ErrorKind::kComm);
    EXPECT_TRUE(mine.tells(world.rank() == 2 ? "pair: rank 2: all_reduce, call 1: stopped: rank 3"
                                             : "stopped: rank 3"))
        << mine.message;
    EXPECT_EQ(failure_here([&] { world.exchange({}); }).kind, ErrorKind::kComm)
        << "every call fails after it";
    ++stopped;
  });
  EXPECT_EQ(failure.kind, ErrorKind::kIo);
  EXPECT_EQ(failure.message, "rank 3: the disk is full");
  EXPECT_EQ(stopped.load(), 3);
}

TEST(ThreadRanks, NameTheRankOfErrorsThatAreNotOurs) {
  const auto thrown = [](const auto& error) {
    return failure_of(2, {}, [&](Communicator& world) {
      if (world.rank() == 1) throw error;
      world.exchange({});
    });
  };
  EXPECT_EQ(thrown(std::runtime_error("odd")).message, "rank 1: odd");
  EXPECT_TRUE(thrown(std::bad_alloc()).message.starts_with("rank 1: out of memory;"));
  EXPECT_EQ(thrown(std::bad_alloc()).kind, ErrorKind::kSystem);
}

// A signal is no failure, whichever rank obeys it first, while the others wait for that rank.
TEST(ThreadRanks, PassAStopOnAsItIs) {
  for (int stopped = 0; stopped < 3; ++stopped) {
    const StopSignal stop;
    try {
      run_thread_ranks(3, {}, [&](Communicator& world) {
        if (world.rank() != stopped) world.exchange({});
        std::raise(SIGUSR1);
        stop_if_asked();
      });
      ADD_FAILURE() << "rank " << stopped << " was not stopped";
    } catch (const Stopped& caught) {
      EXPECT_EQ(caught.name, "SIGUSR1");
    }
  }
}

TEST(ThreadRanks, OfOneRunInTheCallingThread) {
  std::thread::id where;
  run_thread_ranks(1, {}, [&](Communicator& world) {
    EXPECT_EQ(world.name(), "world");
    where = std::this_thread::get_id();
  });
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_EQ(failure_of(1, {}, [](Communicator&) { fail(ErrorKind::kData, "bad"); }).message, "bad");
  EXPECT_EQ(failure_of(0, {}, [](Communicator&) {}).kind, ErrorKind::kInternal);
}

TEST(ThreadRanks, AreAllWokenByAbort) {
  const Failure failure = failure_of(3, {}, [](Communicator& world) {
    Rank rank;
    Tensor tensor(DType::kF32, 1);
    if (world.rank() == 0) return world.recv(rank.compute, tensor.view(), 2);
    if (world.rank() == 1) return world.all_reduce(rank.compute, tensor.view(), Reduce::kSum);
    std::this_thread::sleep_for(20ms);  // too short a sleep only makes the test weaker
    world.abort("no more of this");
  });
  EXPECT_EQ(failure.kind, ErrorKind::kComm);
  EXPECT_TRUE(failure.tells("no more of this")) << failure.message;
}

// On a busy machine the ranks of a run may start late, so they meet before the first call that is to time
// out.
constexpr ThreadCommOptions kShort{.timeout = 300ms};

TEST(ThreadRanks, NameThoseThatDidNotComeInTime) {
  std::atomic<bool> over{false};
  const auto end = [&] {
    over = true;
    over.notify_all();
  };
  std::latch all_four(4);
  const Failure meeting = failure_of(4, kShort, [&](Communicator& world) {
    all_four.arrive_and_wait();
    if (world.rank() % 2 == 1) return over.wait(false);
    const Failure mine = failure_here([&] { world.exchange({}); });
    end();
    EXPECT_EQ(mine.kind, ErrorKind::kComm);
    fail(ErrorKind::kComm, mine.message);
  });
  EXPECT_EQ(meeting.kind, ErrorKind::kComm);
  EXPECT_TRUE(meeting.tells(": exchange, call 1: timed out after 0.3 s waiting for ranks 1, 3"))
      << meeting.message;
  EXPECT_TRUE(meeting.tells("--distributed-timeout-minutes")) << meeting.message;

  for (const bool receive : {false, true}) {
    over = false;
    std::latch both(2);
    const Failure message = failure_of(2, kShort, [&](Communicator& world) {
      Rank rank;
      both.arrive_and_wait();
      Link link(world, 1, 4);
      if (world.rank() == 1) return over.wait(false);
      Tensor one = numbered(0, 1);
      const Failure mine = failure_here([&] {
        if (receive) return link->recv(rank.compute, one.view(), 1);
        for (int i = 0; i < 2; ++i) link->send(rank.compute, one.view(), 1);
      });
      end();
      fail(ErrorKind::kComm, mine.message);
    });
    EXPECT_TRUE(message.tells(receive ? "recv, call 1: timed out after 0.3 s waiting for rank 1"
                                      : "send, call 2: timed out after 0.3 s waiting for rank 1"))
        << message.message;
  }
}

TEST(ThreadRanks, DoNotWaitForThoseThatHaveLeft) {
  for (const bool receive : {false, true}) {
    const Failure failure = failure_of(3, {}, [&](Communicator& world) {
      if (world.rank() == 1) return;
      Rank rank;
      Tensor one = numbered(0, 1);
      if (receive && world.rank() == 0) return world.recv(rank.compute, one.view(), 1);
      world.all_reduce(rank.compute, one.view(), Reduce::kSum);
    });
    EXPECT_EQ(failure.kind, ErrorKind::kComm);
    EXPECT_TRUE(failure.tells("forever for rank 1, which left the group")) << failure.message;
  }
}

// What a rank sees of the others while its device waits for theirs.
TEST(ThreadRanks, SeeWhoIsAtItsDeviceWhoIsElsewhereAndWhoHasLeft) {
  std::latch noted(4);
  run_thread_ranks(4, {}, [&](Communicator& world) {
    RunWatch& run = run_watch_of(world);
    EXPECT_FALSE(run.stopped());
    EXPECT_EQ(run.left(), std::vector<int>());
    if (world.rank() < 2) run.wait_for_device(true);
    noted.arrive_and_wait();
    if (world.rank() != 0) {
      while (world.rank() == 2 && run.left().size() < 2) std::this_thread::sleep_for(1ms);
      return;
    }
    while (run.left().size() < 3) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(run.left(), (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(run.absent().ranks, (std::vector<int>{1, 2, 3}));
    EXPECT_FALSE(run.absent().silent);
  });
  std::latch both(2);
  const Failure failure = failure_of(2, {}, [&](Communicator& world) {
    const auto group = world.split("group", 0, -world.rank());
    RunWatch& run = run_watch_of(*group);
    run.wait_for_device(world.rank() == 0);
    both.arrive_and_wait();
    EXPECT_EQ(run.rank_at(0), 1);
    if (world.rank() == 0) {
      EXPECT_EQ(run.absent().ranks, std::vector<int>{1});
    }
    world.exchange({});
    world.abort("no more of this");
    EXPECT_TRUE(run.stopped());
    EXPECT_EQ(run.why_stopped(), "no more of this");
  });
  EXPECT_TRUE(failure.tells("no more of this")) << failure.message;
}

// The failing rank destroys its backend, and with it a queue stream that waits for peers. These peers wait
// for the failing rank, but nothing may hang.
TEST(ThreadRanks, FailWhileTheirQueueStreamsWait) {
  const Failure failure = failure_of(3, {}, [](Communicator& world) {
    const auto data = world.split("data", 0, world.rank());
    Tensor gradients(DType::kF32, 100);
    Rank rank;
    if (world.rank() == 1) data->all_reduce(rank.queue, gradients.view(), Reduce::kSum);
    if (world.rank() == 1) fail(ErrorKind::kData, "a bad sample");
    world.exchange({});
  });
  EXPECT_EQ(failure.kind, ErrorKind::kData);
  EXPECT_EQ(failure.message, "rank 1: a bad sample");
}

// The error of a call on a queue stream must be thrown where the rank waits for the stream, and by the run.
TEST(ThreadRanks, FailWithWhatAQueueStreamFoundOut) {
  const Failure failure = failure_of(2, {}, [](Communicator& world) {
    Rank rank;
    Tensor tensor(DType::kF32, 4 + world.rank());
    world.all_reduce(rank.queue, tensor.view(), Reduce::kSum);
    const Failure mine = failure_here([&] { rank.compute.wait(rank.queue.record()); });
    EXPECT_EQ(mine.kind, ErrorKind::kInternal);
    rank.queue.synchronize();
  });
  EXPECT_EQ(failure.kind, ErrorKind::kInternal);
  EXPECT_TRUE(failure.tells("rank 0 calls all_reduce of 4 fp32 (sum), rank 1 calls all_reduce of 5"))
      << failure.message;
}

// A hundred runs fail, each at a different moment. None may hang, and none may name a rank that did not fail.
TEST(ThreadRanks, EndAtAnyMoment) {
  for (int run = 0; run < 100; ++run) {
    const Failure failure = failure_of(4, {}, [run](Communicator& world) {
      Rank rank;
      const auto data = world.split("data", 0, world.rank());
      Link link(world, 2, 400);
      Tensor one = numbered(0, 100), other = one;
      const Drain drain(rank.queue);  // synchronizes before the tensor is destroyed
      for (int step = 0;; ++step) {
        if (world.rank() == run % 4 && step == run / 4) fail(ErrorKind::kIo, "step ", step);
        data->all_reduce(rank.queue, one.view(), Reduce::kMax);
        link->send(rank.compute, other.view(), (world.rank() + 1) % 4);
        link->recv(rank.compute, other.view(), (world.rank() + 3) % 4);
        world.all_reduce(rank.compute, other.view(), Reduce::kMax);
      }
    });
    EXPECT_EQ(failure.kind, ErrorKind::kIo);
    EXPECT_EQ(failure.message, concat("rank ", run % 4, ": step ", run / 4));
  }
}

TEST(ThreadGroupDeathTest, EndsTheProcessIfARankNeverLetsGoOfTheOthersMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        set_last_wait_limit(std::chrono::milliseconds(200));
        const auto world = std::make_shared<ThreadWorld>(2, std::chrono::milliseconds(10'000));
        ThreadGroup group(world, "world", {0, 1});
        std::thread other([&] { group.begin_call(1, {.name = "exchange"}); });
        group.begin_call(0, {.name = "exchange"});
        group.end_call(0);
      },
      testing::ExitedWithCode(75), "waited 0.2 s for a rank that uses another rank's memory");
}

}  // namespace
}  // namespace megalith
