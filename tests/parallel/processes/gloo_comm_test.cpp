#include "libcore/parallel/processes/gloo_comm.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/parallel/part_calls.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

// ---- means

// The memory of send slots is static, since it has to outlive the communicator.

/// The results of one rank's calls.
using Results = std::vector<Tensor>;
using Script = std::function<Results(Communicator& world)>;

/// Expects that each rank gets the same results when the ranks are processes as when they are threads.
void expect_as_threads(int size, const Script& script) {
  const auto ends = Processes(size).run([&](Communicator& world) {
    std::vector<Results> threads(static_cast<size_t>(size));
    run_thread_ranks(size, {},
                     [&](Communicator& all) { threads[static_cast<size_t>(all.rank())] = script(all); });
    EXPECT_TRUE(script(world) == threads[static_cast<size_t>(world.rank())]) << "rank " << world.rank();
  });
  for (const RankEnd& end : ends) EXPECT_TRUE(end.is_exit(0)) << end.status << " " << end.error;
}

void expect_fine(int size, const Processes::Body& body) {
  for (const RankEnd& end : Processes(size).run(body)) EXPECT_TRUE(end.is_exit(0)) << end.status << end.error;
}

/// A large tensor of numbers that are quick to compute: sixteenths, whose sums over a few ranks are exact in
/// fp32.
Tensor great_tensor(DType dtype, int rank, int64_t elements) {
  Tensor tensor(dtype, elements);
  for (int64_t i = 0; i < elements; ++i)
    tensor.set(i, static_cast<double>((i * 7919 + rank * 104729) % 2003 - 1001) / 16);
  return tensor;
}

/// Some places of a large tensor: the first, the last, and every 997th from 61 on.
std::vector<int64_t> places_of(int64_t elements) {
  std::vector<int64_t> places = {0, elements - 1};
  for (int64_t i = 61; i < elements; i += 997) places.push_back(i);
  return places;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class GlooComm : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { SKIP_WITHOUT_GLOO(); }
};
INSTANTIATE_TEST_SUITE_P(Ranks, GlooComm, testing::Values(2, 3, 4),
                         [](const auto& instance) { return std::to_string(instance.param); });

class GlooRanks : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_GLOO(); }
};

// ---- collectives

TEST_P(GlooComm, AllReduceGivesEveryRankTheSumInRankOrder) {
  expect_fine(GetParam(), [&](Communicator& world) {
    Rank rank;
    for (const DType dtype : kReduced)
      for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
        for (const int64_t elements : {0, 1, 2, 63, 64, 65, 1000, 4097}) {
          std::vector<Tensor> inputs = tensors_of(dtype, GetParam(), elements);
          Tensor mine = inputs[static_cast<size_t>(world.rank())];
          world.all_reduce(rank.compute, mine.view(), reduce);
          EXPECT_EQ(mine, reduced(inputs, dtype, reduce)) << name_of(dtype) << " " << elements;
        }
  });
}

/// The tensors are larger than one segment of each rank, and larger than the window of segments; the last
/// slices are shorter or empty.
TEST_P(GlooComm, AllReduceOfGreatTensorsIsThatOfTheirElements) {
  expect_fine(GetParam(), [&](Communicator& world) {
    Rank rank;
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kI64})
      for (const int64_t elements : {int64_t{70001}, int64_t{2'400'007}}) {
        Tensor mine = great_tensor(dtype, world.rank(), elements);
        world.all_reduce(rank.compute, mine.view(), Reduce::kSum);
        for (const int64_t i : places_of(elements)) {
          double sum = 0;
          for (int other = 0; other < GetParam(); ++other) {
            Tensor one(dtype, 1);
            one.set(0, static_cast<double>((i * 7919 + other * 104729) % 2003 - 1001) / 16);
            sum += one.get(0);
          }
          Tensor wanted(dtype, 1);
          wanted.set(0, sum);
          ASSERT_EQ(mine.get(i), wanted.get(0)) << name_of(dtype) << " " << elements << " at " << i;
        }
      }
  });
}

TEST_P(GlooComm, ReductionsAreThoseOfThreads) {
  expect_as_threads(GetParam(), [](Communicator& world) {
    Rank rank;
    Results results;
    const int n = world.size();
    for (const DType dtype : kReduced)
      for (const int64_t part : {1, 501, 70'001}) {
        const int64_t whole = part * n;
        Tensor sum =
            part > 501 ? great_tensor(dtype, world.rank(), whole) : tensor_of(dtype, world.rank(), whole);
        Tensor in = sum, scattered(dtype, part), most = sum, in_place = sum;
        world.all_reduce(rank.compute, sum.view(), Reduce::kSum);
        world.all_reduce(rank.queue, most.view(), Reduce::kMax);
        rank.queue.synchronize();
        world.reduce_scatter(rank.compute, scattered.view(), in.view(), Reduce::kSum);
        world.reduce_scatter(rank.compute, in_place.part(world.rank(), n), in_place.view(), Reduce::kMax);
        results.insert(results.end(), {sum, most, in, scattered});
        Tensor own(dtype, part);
        std::memcpy(own.view().data, in_place.part(world.rank(), n).data, own.view().bytes());
        results.push_back(own);
      }
    return results;
  });
}

TEST_P(GlooComm, MovesTensorsAsTheirNamesSay) {
  const int n = GetParam();
  expect_fine(n, [&](Communicator& world) {
    Rank rank;
    const int me = world.rank();
    for (const int64_t part : {0, 1, 77, 300'001}) {
      Tensor mine = great_tensor(DType::kF32, me, part), all(DType::kF32, part * n);
      world.all_gather(rank.compute, all.view(), mine.view());
      Tensor in_place(DType::kF32, part * n);
      if (part > 0) std::memcpy(in_place.part(me, n).data, mine.view().data, mine.view().bytes());
      world.all_gather(rank.compute, in_place.view(), in_place.part(me, n));
      EXPECT_EQ(in_place, all);
      Tensor out = great_tensor(DType::kF32, me, part * n), in(DType::kF32, part * n);
      world.all_to_all(rank.compute, in.view(), out.view());
      for (int other = 0; other < n; ++other) {
        Tensor theirs = great_tensor(DType::kF32, other, part),
               rows = great_tensor(DType::kF32, other, part * n);
        for (int64_t i = 0; i<part; i += part> 77 ? 997 : 1) {
          ASSERT_EQ(all.get(other * part + i), theirs.get(i)) << other << " " << part << " " << i;
          ASSERT_EQ(in.get(other * part + i), rows.get(me * part + i)) << other << " " << part << " " << i;
        }
        Tensor told = great_tensor(DType::kF32, me, part);
        world.broadcast(rank.compute, told.view(), other);
        EXPECT_EQ(told, theirs) << "from " << other;
      }
    }
  });
}

TEST_P(GlooComm, GathersAndReducesPartsOfSomePlaces) {
  expect_fine(GetParam(), [](Communicator& world) {
    Rank rank;
    const CallOnCopy on_copy = [&](Tensor tensor, const auto& call) {
      call(rank.compute, tensor.view());
      return tensor;
    };
    expect_gathered_parts(world, on_copy);
    expect_reduced_parts(world, on_copy);
  });
}

TEST_P(GlooComm, ExchangesTextsOfAnyLength) {
  expect_fine(GetParam(), [&](Communicator& world) {
    const auto text_of = [](int rank, size_t round) {
      constexpr size_t kLengths[] = {0, 1, 5000, 700'001};
      return std::string(kLengths[(static_cast<size_t>(rank) + round) % 4], static_cast<char>('a' + rank));
    };
    for (size_t round = 0; round < 4; ++round) {
      const auto all = world.exchange(text_of(world.rank(), round));
      ASSERT_EQ(all.size(), static_cast<size_t>(world.size()));
      for (int rank = 0; rank < world.size(); ++rank)
        EXPECT_TRUE(all[static_cast<size_t>(rank)] == text_of(rank, round)) << rank << " " << round;
    }
  });
}

// ---- groups

TEST_F(GlooRanks, SplitOrdersByKeyAndGroupsDoNotMix) {
  expect_fine(4, [](Communicator& world) {
    Rank rank;
    const int me = world.rank();
    const auto backward = world.split("backward", 0, -me);
    EXPECT_EQ(backward->rank(), 3 - me);
    const auto pair = world.split("pair", me % 2, me);  // 0 and 2; 1 and 3
    ASSERT_EQ(pair->size(), 2);
    EXPECT_EQ(pair->rank(), me / 2);
    EXPECT_EQ(pair->name(), "pair");
    const auto alone = pair->split("alone", me, 0);
    EXPECT_EQ(alone->size(), 1);
    for (int round = 0; round < 20; ++round) {
      Tensor sum(DType::kF32, 3), last(DType::kF32, 3), own(DType::kF32, 3);
      for (int64_t i = 0; i < 3; ++i) {
        sum.set(i, me + round);
        last.set(i, me);
        own.set(i, me);
      }
      pair->all_reduce(rank.compute, sum.view(), Reduce::kSum);
      backward->broadcast(rank.compute, last.view(), 0);
      alone->all_reduce(rank.compute, own.view(), Reduce::kSum);
      EXPECT_EQ(sum.get(1), 2 * (me % 2) + 2 + 2 * round);
      EXPECT_EQ(last.get(2), 3);
      EXPECT_EQ(own.get(0), me);
    }
    EXPECT_EQ(alone->exchange("x"), std::vector<std::string>{"x"});
  });
}

/// Each rank uses two streams, each with a group of its own.
TEST_F(GlooRanks, GroupsWorkAtTheSameTime) {
  expect_fine(3, [](Communicator& world) {
    Rank rank;
    const auto other = world.split("other", 0, world.rank());
    std::vector<Tensor> a, b;
    for (int i = 0; i < 12; ++i) {
      a.push_back(great_tensor(DType::kF32, world.rank(), 400'000));
      b.push_back(great_tensor(DType::kF32, world.rank() + 1, 5 + i));
    }
    for (size_t i = 0; i < a.size(); ++i) {
      world.all_reduce(rank.queue, a[i].view(), Reduce::kSum);
      other->all_reduce(rank.compute, b[i].view(), Reduce::kSum);
    }
    rank.queue.synchronize();
    for (size_t i = 0; i < a.size(); ++i) {
      const double ranks[] = {great_tensor(DType::kF32, 0, 5).get(4), great_tensor(DType::kF32, 1, 5).get(4),
                              great_tensor(DType::kF32, 2, 5).get(4), great_tensor(DType::kF32, 3, 5).get(4)};
      EXPECT_EQ(a[i].get(4), ranks[0] + ranks[1] + ranks[2]);
      EXPECT_EQ(b[i].get(4), ranks[1] + ranks[2] + ranks[3]);
    }
  });
}

// ---- messages

TEST_F(GlooRanks, MessagesArriveInOrderThroughFewSlots) {
  expect_fine(3, [](Communicator& world) {
    Rank rank;
    const int n = world.size(), to = (world.rank() + 1) % n, from = (world.rank() + n - 1) % n;
    static Tensor memory(DType::kF32, 3 * 200'000);
    world.set_send_slots(memory.view(), 3);
    constexpr int64_t kSizes[] = {1, 200'000, 0, 17, 17, 60'000};
    for (int round = 0; round < 24; ++round) {
      const int64_t elements = kSizes[round % 6];
      Tensor out = great_tensor(DType::kF32, world.rank() + 10 * round, elements), in(DType::kF32, elements);
      world.send(rank.compute, out.view(), to);
      if (elements > 0) out.set(0, -1);  // the message has already been copied
      world.recv(rank.queue, in.view(), from);
      rank.queue.synchronize();
      EXPECT_TRUE(in == great_tensor(DType::kF32, from + 10 * round, elements)) << round;
    }
  });
}

/// Sends as many messages as there are slots. Slots may become free in an order other than that in which they
/// were filled.
TEST_F(GlooRanks, SendDoesNotWaitForItsReceiver) {
  Processes processes(3);
  const auto ends = processes.run([&](Communicator& world) {
    Rank rank;
    static Tensor memory(DType::kF32, 2 * 8);
    world.set_send_slots(memory.view(), 2);
    Tensor one = tensor_of(DType::kF32, 0, 8), two = tensor_of(DType::kF32, 1, 8);
    if (world.rank() == 0) {
      world.send(rank.compute, one.view(), 1);
      world.send(rank.compute, two.view(), 2);
      EXPECT_THROW(world.set_send_slots(memory.view(), 1), Error);
      world.exchange("both sent");
      world.send(rank.compute, two.view(), 2);  // rank 1 has not received yet
    } else {
      world.exchange("");
    }
    Tensor in(DType::kF32, 8);
    if (world.rank() == 2) {
      for (int i = 0; i < 2; ++i) {
        world.recv(rank.compute, in.view(), 0);
        EXPECT_EQ(in, two);
      }
    }
    world.exchange("two has all");
    if (world.rank() == 1) {
      world.recv(rank.compute, in.view(), 0);
      EXPECT_EQ(in, one);
    }
  });
  for (const RankEnd& end : ends) EXPECT_TRUE(end.is_exit(0)) << end.status << end.error;
}

/// Each of eight ranks must have only three threads: with a thread for each peer, n ranks on one machine
/// would have n * n.
TEST_F(GlooRanks, ThreadsDoNotGrowWithTheRanks) {
  expect_fine(8, [](Communicator& world) {
    EXPECT_EQ(test::threads_of_process(), 3);  // the main thread, Gloo's and the world's
    Rank rank;
    static Tensor memory(DType::kF32, 7 * 8);
    world.set_send_slots(memory.view(), 7);
    const int before = test::threads_of_process();
    Tensor tensor(DType::kF32, 8);
    for (int step = 1; step < 8; ++step) world.send(rank.compute, tensor.view(), (world.rank() + step) % 8);
    for (int step = 1; step < 8; ++step) world.recv(rank.compute, tensor.view(), (world.rank() + step) % 8);
    EXPECT_EQ(test::threads_of_process(), before);
  });
}

/// Rank 1 does not receive its message, which keeps one of two slots taken. Messages to rank 2 must still get
/// through.
TEST_F(GlooRanks, ASendWaitsForTheFirstSlotThatIsFree) {
  expect_fine(3, [](Communicator& world) {
    Rank rank;
    constexpr int kMessages = 50;
    static Tensor memory(DType::kF32, 2 * 8);
    world.set_send_slots(memory.view(), 2);
    Tensor tensor(DType::kF32, 8);
    if (world.rank() == 0) {
      world.send(rank.compute, tensor.view(), 1);
      for (int i = 0; i < kMessages; ++i) world.send(rank.compute, tensor.view(), 2);
    }
    if (world.rank() == 2)
      for (int i = 0; i < kMessages; ++i) world.recv(rank.compute, tensor.view(), 0);
    world.exchange("two has all");
    if (world.rank() == 1) world.recv(rank.compute, tensor.view(), 0);
  });
}

// ---- mistakes

TEST_F(GlooRanks, DifferentCallsAreRefusedByEveryRank) {
  const auto ends = Processes(3).run([](Communicator& world) {
    Rank rank;
    world.exchange("");
    Tensor tensor(DType::kF32, world.rank() == 1 ? 200'001 : 200'000);
    world.all_reduce(rank.compute, tensor.view(), Reduce::kSum);
  });
  const std::string wanted =
      "world: call 2: rank 0 on host h0 calls all_reduce of 200000 fp32 (sum), rank 1 on host h1 calls "
      "all_reduce of 200001 fp32 (sum); all ranks of a group have to make the same calls";
  int named = 0;
  for (const RankEnd& end : ends) {
    EXPECT_TRUE(end.is_exit(70) || end.is_exit(75)) << end.status << end.error;
    EXPECT_TRUE(contains(end.error, wanted)) << end.error;
    named += end.is_exit(70) ? 1 : 0;
  }
  EXPECT_GE(named, 1);
}

TEST_F(GlooRanks, MessagesOfAnotherSizeAreRefused) {
  const auto ends = Processes(2).run([](Communicator& world) {
    Rank rank;
    static Tensor memory(DType::kF32, 64);
    world.set_send_slots(memory.view(), 2);
    Tensor tensor(DType::kF32, world.rank() == 0 ? 8 : 9);
    if (world.rank() == 0)
      world.send(rank.compute, tensor.view(), 1);
    else
      world.recv(rank.compute, tensor.view(), 0);
    world.exchange("");
  });
  EXPECT_TRUE(ends[1].is_exit(70)) << ends[1].status;
  EXPECT_TRUE(
      contains(ends[1].error,
               "world: rank 1 on host h1: recv, call 1: rank 0 on host h0 sent 8 fp32, rank 1 on host "
               "h1 receives 9 fp32"))
      << ends[1].error;
  EXPECT_TRUE(ends[0].is_exit(75)) << ends[0].status;
  EXPECT_TRUE(contains(ends[0].error, "sent 8 fp32")) << ends[0].error;
}

TEST_F(GlooRanks, CallsThatCannotBeAreRefused) {
  const auto ends = Processes(2).run([](Communicator& world) {
    Rank rank;
    Tensor bytes(DType::kU8, 8);
    world.all_reduce(rank.compute, bytes.view(), Reduce::kSum);
  });
  for (const RankEnd& end : ends) EXPECT_TRUE(contains(end.error, "no sums or maxima of")) << end.error;
}

// ---- ends

[[noreturn]] void all_reduce_without_end(Communicator& world, Processes& processes) {
  Rank rank;
  Tensor tensor(DType::kF32, 500'000);
  for (int round = 0;; ++round) {
    world.all_reduce(rank.compute, tensor.view(), Reduce::kSum);
    if (round == 3) processes.ready();
  }
}

/// Sends a signal to the last rank while all ranks repeat all-reduces. Returns how the other ranks ended.
std::vector<RankEnd> signal_in_all_reduces(int size, int signal, std::chrono::milliseconds timeout) {
  Processes processes(size, timeout);
  const int victim = size - 1;
  auto ends = processes.run([&](Communicator& world) { all_reduce_without_end(world, processes); },
                            [&] {
                              processes.signal(victim, signal);
                              for (int rank = 0; rank < victim; ++rank) processes.await_end(rank);
                              processes.signal(victim, SIGKILL);
                            });
  EXPECT_TRUE(ends.back().is_signal(SIGKILL)) << ends.back().status;
  ends.pop_back();
  return ends;
}

TEST_P(GlooComm, AKilledRankIsNamedAtOnce) {
  const auto ends = signal_in_all_reduces(GetParam(), SIGKILL, 30s);
  for (const RankEnd& end : ends) {
    EXPECT_TRUE(end.is_exit(75)) << end.status << end.error;
    EXPECT_LT(end.seconds, 10);
    EXPECT_TRUE(contains(end.error, concat("the connection to rank ", GetParam() - 1, " on host h",
                                           GetParam() - 1, " is lost")))
        << end.error;
    EXPECT_TRUE(contains(end.error, "all_reduce, call ")) << end.error;
  }
}

// A rank that was not running when its peers died cannot know which of them died first.
TEST_F(GlooRanks, AllRanksThatAreFoundDeadAreNamed) {
  Processes processes(4, 30s);
  const auto ends = processes.run([&](Communicator& world) { all_reduce_without_end(world, processes); },
                                  [&] {
                                    for (int rank = 0; rank < 4; ++rank) processes.signal(rank, SIGSTOP);
                                    for (const int rank : {3, 1}) processes.signal(rank, SIGKILL);
                                    for (const int rank : {3, 1}) processes.await_end(rank);
                                    for (const int rank : {0, 2}) processes.signal(rank, SIGCONT);
                                    for (const int rank : {0, 2}) processes.await_end(rank);
                                  });
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_TRUE(ends[rank].is_exit(75)) << ends[rank].status << ends[rank].error;
    for (const char* part : {"are lost: their processes ended", "rank 1 on host h1", "rank 3 on host h3"})
      EXPECT_TRUE(contains(ends[rank].error, part)) << ends[rank].error;
  }
}

TEST_P(GlooComm, AStoppedRankIsNamedAfterTheTimeout) {
  const auto ends = signal_in_all_reduces(GetParam(), SIGSTOP, 1500ms);
  for (const RankEnd& end : ends) {
    EXPECT_TRUE(end.is_exit(75)) << end.status << end.error;
    EXPECT_LT(end.seconds, 1.5 + 5);
    EXPECT_TRUE(contains(end.error, "timed out after 1.5 s waiting for rank ")) << end.error;
    EXPECT_TRUE(contains(end.error, concat("rank ", GetParam() - 1, " on host h", GetParam() - 1,
                                           ", which does not answer; if a rank")))
        << end.error;
    EXPECT_TRUE(contains(end.error, "all_reduce, call ")) << end.error;
  }
}

// The healthy ranks are asked after the silent one, and must still be heard.
TEST_F(GlooRanks, OnlyStoppedRanksAreNamed) {
  Processes processes(5, 1500ms);
  const auto ends = processes.run([&](Communicator& world) { all_reduce_without_end(world, processes); },
                                  [&] {
                                    for (const int rank : {0, 2}) processes.signal(rank, SIGSTOP);
                                    for (const int rank : {1, 3, 4}) processes.await_end(rank);
                                    for (const int rank : {0, 2}) processes.signal(rank, SIGKILL);
                                  });
  for (const size_t rank : {size_t{1}, size_t{3}, size_t{4}}) {
    const std::string& error = ends[rank].error;
    EXPECT_TRUE(ends[rank].is_exit(75)) << ends[rank].status << error;
    EXPECT_LT(ends[rank].seconds, 1.5 + 5);
    EXPECT_TRUE(contains(error, "rank 0 on host h0, rank 2 on host h2, which does not answer")) << error;
  }
}

/// Rank 0 waits for rank 1, which waits for rank 2. Rank 2 does something else, but its process answers.
TEST_F(GlooRanks, ARankThatHangsIsNamedByThoseThatItHoldsUp) {
  Processes processes(3, 1500ms);
  const auto ends = processes.run([&](Communicator& world) {
    Rank rank;
    Tensor tensor(DType::kF32, 8);
    if (world.rank() < 2) world.recv(rank.compute, tensor.view(), world.rank() + 1);
    std::this_thread::sleep_for(6s);
    world.exchange("");
  });
  for (const size_t rank : {size_t{0}, size_t{1}}) {
    EXPECT_TRUE(ends[rank].is_exit(75)) << ends[rank].status;
    EXPECT_LT(ends[rank].seconds, 1.5 + 5);
    EXPECT_TRUE(contains(ends[rank].error, "rank 2 on host h2; if a rank")) << ends[rank].error;
  }
  EXPECT_TRUE(ends[2].is_exit(75)) << ends[2].status;
  EXPECT_TRUE(contains(ends[2].error, "exchange, call 1: stopped")) << ends[2].error;
}

/// The sender waits only for a free slot, never for a message, and must still notice that the receiver was
/// killed.
TEST_F(GlooRanks, AReceiverThatIsKilledEndsItsSender) {
  Processes processes(2);
  const auto ends = processes.run(
      [&](Communicator& world) {
        Rank rank;
        static Tensor memory(DType::kF32, 200'000);
        Tensor message(DType::kF32, 100'000);
        world.set_send_slots(memory.view(), 2);
        processes.ready();
        while (world.rank() == 0) world.send(rank.compute, message.view(), 1);
        std::this_thread::sleep_for(1min);
      },
      [&] { processes.signal(1, SIGKILL); });
  EXPECT_TRUE(ends[0].is_exit(75)) << ends[0].status << ends[0].error;
  EXPECT_LT(ends[0].seconds, 10);
  EXPECT_TRUE(contains(ends[0].error, "send, call 3: ")) << ends[0].error;
  EXPECT_TRUE(contains(ends[0].error, "the connection to rank 1 on host h1 is lost")) << ends[0].error;
}

TEST_F(GlooRanks, AbortWakesEveryGroup) {
  Processes processes(3);
  const auto ends = processes.run([&](Communicator& world) {
    Rank rank;
    const auto pair = world.split("pair", world.rank() == 2 ? 1 : 0, world.rank());
    Tensor tensor(DType::kF32, 8);
    if (world.rank() == 2) {
      std::this_thread::sleep_for(200ms);
      world.abort("the disk is full");
      fail(ErrorKind::kIo, "the disk is full");
    }
    if (world.rank() == 1) pair->recv(rank.compute, tensor.view(), 0);
    world.all_reduce(rank.compute, tensor.view(), Reduce::kSum);
  });
  EXPECT_TRUE(ends[2].is_exit(74));
  for (const size_t rank : {size_t{0}, size_t{1}}) {
    EXPECT_TRUE(ends[rank].is_exit(75)) << ends[rank].status;
    EXPECT_LT(ends[rank].seconds, 5);
    EXPECT_TRUE(contains(ends[rank].error, "the disk is full")) << ends[rank].error;
  }
  EXPECT_TRUE(contains(ends[1].error, "pair: rank 1 on host h1: recv, call ")) << ends[1].error;
}

/// Nobody calls abort(): the exception destroys the communicators while the stack unwinds.
TEST_F(GlooRanks, ARankThatThrowsWakesTheOthers) {
  const auto ends = Processes(3).run([](Communicator& world) {
    Rank rank;
    Tensor tensor(DType::kF32, 8);
    if (world.rank() == 1) fail(ErrorKind::kData, "a bad file");
    world.all_reduce(rank.compute, tensor.view(), Reduce::kSum);
  });
  EXPECT_TRUE(ends[1].is_exit(65)) << ends[1].status;
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_TRUE(ends[rank].is_exit(75)) << ends[rank].status;
    EXPECT_LT(ends[rank].seconds, 5);
    EXPECT_TRUE(contains(ends[rank].error, "rank 1 on host h1")) << ends[rank].error;
  }
}

TEST_F(GlooRanks, ARankThatHasEndedIsNotWaitedFor) {
  const auto ends = Processes(2).run([](Communicator& world) {
    Rank rank;
    Tensor tensor(DType::kF32, 8);
    if (world.rank() == 0) world.all_reduce(rank.compute, tensor.view(), Reduce::kSum);
  });
  EXPECT_TRUE(ends[0].is_exit(75)) << ends[0].status;
  EXPECT_LT(ends[0].seconds, 5);
  EXPECT_TRUE(contains(ends[0].error, "would wait forever for rank 1 on host h1, which left the group"))
      << ends[0].error;
  EXPECT_TRUE(ends[1].is_exit(0)) << ends[1].status << ends[1].error;
}

/// A rank's last messages are received even if the rank ends right after sending them.
TEST_F(GlooRanks, AnEndWaitsForItsMessages) {
  expect_fine(2, [](Communicator& world) {
    Rank rank;
    static Tensor memory(DType::kF32, 300'000);
    Tensor tensor = great_tensor(DType::kF32, 5, 300'000);
    world.set_send_slots(memory.view(), 1);
    if (world.rank() == 0) return world.send(rank.compute, tensor.view(), 1);
    std::this_thread::sleep_for(300ms);
    Tensor in(DType::kF32, 300'000);
    world.recv(rank.compute, in.view(), 0);
    EXPECT_TRUE(in == tensor);
  });
}

TEST(GlooPlugin, OneRankNeedsNone) {
  const auto world = make_process_comm({});
  EXPECT_EQ(world->size(), 1);
  EXPECT_EQ(world->name(), "world");
}

TEST(GlooPlugin, WithoutItThePackageIsNamed) {
  if (has_process_comm()) GTEST_SKIP() << "libmegalith_gloo.so was built";
  try {
    make_process_comm({.rank = 0, .size = 2, .exchange = {}, .interface_address = "127.0.0.1"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_TRUE(contains(error.what(), "libgloo-dev")) << error.what();
  }
}

}  // namespace
}  // namespace megalith
