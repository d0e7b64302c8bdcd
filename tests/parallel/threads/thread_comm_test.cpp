#include "libcore/parallel/threads/thread_comm.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/parallel/part_calls.h"
#include "tests/parallel/threads/thread_ranks.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;
using test::Failure;
using test::failure_here;
using test::failure_of;
using test::Link;
using test::numbered;

// ---- collectives

class ThreadComm : public testing::TestWithParam<int> {
 protected:
  /// Runs `body` on every rank, each with a backend of its own.
  static void run(const std::function<void(Communicator&, Rank&)>& body) {
    run_thread_ranks(GetParam(), {}, [&](Communicator& world) {
      Rank rank;
      body(world, rank);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadComm, testing::Values(1, 2, 3, 4, 8),
                         [](const auto& instance) { return std::to_string(instance.param); });

TEST_P(ThreadComm, AllReduceGivesEveryRankTheReductionInRankOrder) {
  for (const DType dtype : kReduced)
    for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
      for (const int64_t elements : {0, 1, 2, 63, 64, 65, 1000, 4097}) {
        std::vector<Tensor> tensors = tensors_of(dtype, GetParam(), elements);
        const Tensor wanted = reduced(tensors, dtype, reduce);
        run([&](Communicator& world, Rank& rank) {
          world.all_reduce(rank.compute, tensors[static_cast<size_t>(world.rank())].view(), reduce);
        });
        for (const Tensor& result : tensors)
          EXPECT_EQ(result, wanted) << name_of(dtype) << " " << elements << " elements";
      }
}

TEST_P(ThreadComm, ReduceScatterGivesEachRankItsPartApartAndInPlace) {
  const int size = GetParam();
  for (const DType dtype : kReduced)
    for (const int64_t part : {0, 1, 17, 2049}) {
      std::vector<Tensor> tensors = tensors_of(dtype, size, part * size);
      Tensor wanted = reduced(tensors, dtype, Reduce::kSum);
      run([&](Communicator& world, Rank& rank) {
        const int me = world.rank();
        Tensor in = tensors[static_cast<size_t>(me)], out(dtype, part);
        world.reduce_scatter(rank.compute, out.view(), in.view(), Reduce::kSum);
        EXPECT_EQ(in, tensors[static_cast<size_t>(me)]);
        world.reduce_scatter(rank.compute, in.part(me, size), in.view(), Reduce::kSum);
        for (int64_t i = 0; i < part; ++i) {
          EXPECT_EQ(out.get(i), wanted.get(me * part + i)) << name_of(dtype) << " " << part;
          EXPECT_EQ(in.get(me * part + i), wanted.get(me * part + i)) << name_of(dtype) << " " << part;
        }
      });
    }
}

TEST_P(ThreadComm, AllGatherPutsTheRanksBehindEachOtherApartAndInPlace) {
  const int size = GetParam();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kU8})
    for (const int64_t part : {0, 1, 17, 1025}) {
      std::vector<double> wanted;
      for (int rank = 0; rank < size; ++rank)
        for (const double value : tensor_of(dtype, rank, part).all()) wanted.push_back(value);
      run([&](Communicator& world, Rank& rank) {
        Tensor mine = tensor_of(dtype, world.rank(), part), out(dtype, part * size),
               in_place(dtype, part * size);
        for (int64_t i = 0; i < part; ++i) in_place.set(world.rank() * part + i, mine.get(i));
        world.all_gather(rank.compute, out.view(), mine.view());
        world.all_gather(rank.compute, in_place.view(), in_place.part(world.rank(), size));
        EXPECT_EQ(out.all(), wanted);
        EXPECT_EQ(in_place.all(), wanted);
      });
    }
}

TEST_P(ThreadComm, AllToAllTurnsRanksAndPartsRound) {
  const int size = GetParam();
  constexpr int64_t kPart = 5;
  run([&](Communicator& world, Rank& rank) {
    Tensor in = numbered(world.rank(), kPart * size), out(DType::kI32, kPart * size);
    world.all_to_all(rank.compute, out.view(), in.view());
    for (int from = 0; from < size; ++from)
      for (int64_t i = 0; i < kPart; ++i)
        EXPECT_EQ(out.get(from * kPart + i), 1000 * from + world.rank() * kPart + i);
  });
}

TEST_P(ThreadComm, BroadcastGivesWhatTheRootHas) {
  for (int root = 0; root < GetParam(); ++root)
    run([&](Communicator& world, Rank& rank) {
      Tensor tensor = numbered(world.rank(), 33);
      world.broadcast(rank.compute, tensor.view(), root);
      EXPECT_EQ(tensor, numbered(root, 33));
    });
}

TEST_P(ThreadComm, GathersAndReducesPartsOfSomePlaces) {
  run([](Communicator& world, Rank& rank) {
    const CallOnCopy on_copy = [&](Tensor tensor, const auto& call) {
      call(rank.compute, tensor.view());
      return tensor;
    };
    expect_gathered_parts(world, on_copy);
    expect_reduced_parts(world, on_copy);
  });
}

TEST_P(ThreadComm, ExchangeGivesAllBytesAndIsABarrier) {
  std::atomic<int> arrived{0};
  run([&](Communicator& world, Rank&) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      const std::string mine = std::string(static_cast<size_t>(world.rank()), '\0') + std::to_string(round);
      const std::vector<std::string> all = world.exchange(mine);
      EXPECT_GE(arrived.load(), round * world.size());
      ASSERT_EQ(all.size(), static_cast<size_t>(world.size()));
      for (size_t rank = 0; rank < all.size(); ++rank)
        EXPECT_EQ(all[rank], std::string(rank, '\0') + std::to_string(round));
    }
    EXPECT_EQ(world.exchange({}), std::vector<std::string>(static_cast<size_t>(world.size())));
  });
}

// Collectives of several groups and dtypes, on a rank's own thread and on its queue stream at the same time.
TEST_P(ThreadComm, ServesSeveralGroupsAndStreamsAtOnce) {
  constexpr int kRounds = 50;
  run([&](Communicator& world, Rank& rank) {
    const auto beside = world.split("beside", 0, world.rank());
    std::vector<Tensor> sums;
    for (int i = 0; i < kRounds; ++i) sums.push_back(numbered(world.rank() + i, 100 + i));
    for (int i = 0; i < kRounds; ++i) {
      beside->all_reduce(rank.queue, sums[static_cast<size_t>(i)].view(), Reduce::kSum);
      Tensor greatest = numbered(world.rank() * i, 7);
      world.all_reduce(rank.compute, greatest.view(), Reduce::kMax);
      EXPECT_EQ(greatest, numbered((world.size() - 1) * i, 7));
    }
    rank.compute.wait(rank.queue.record());
    for (int i = 0; i < kRounds; ++i)
      for (int64_t at = 0; at < 100 + i; ++at) {
        double wanted = 0;
        for (int other = 0; other < world.size(); ++other)
          wanted += 1000.0 * (other + i) + static_cast<double>(at);
        EXPECT_EQ(sums[static_cast<size_t>(i)].get(at), wanted);
      }
  });
}

TEST(ThreadCommSums, AreInRankOrderAndRoundedOnce) {
  // In fp32 1e8 + 1 is 1e8, so only the sum in this order is 0.
  const std::vector<double> ordered{1e8, 1, -1e8};
  // A bf16 has 8 bits, so 2^-8 is half of its step at 1. Added alone, each 2^-8 would be lost by rounding to
  // even.
  const std::vector<double> halves{1, 0x1p-8, 0x1p-8};
  run_thread_ranks(3, {}, [&](Communicator& world) {
    Rank rank;
    Tensor exact(DType::kF32, 1), narrow(DType::kBf16, 1), greatest(DType::kF32, 2);
    exact.set(0, ordered[static_cast<size_t>(world.rank())]);
    world.all_reduce(rank.compute, exact.view(), Reduce::kSum);
    EXPECT_EQ(exact.get(0), 0);
    narrow.set(0, halves[static_cast<size_t>(world.rank())]);
    world.all_reduce(rank.compute, narrow.view(), Reduce::kSum);
    EXPECT_EQ(narrow.get(0), 1 + 0x1p-7);
    greatest.set(0, world.rank() == 1 ? std::nan("") : 5);
    greatest.set(1, -world.rank());
    world.all_reduce(rank.compute, greatest.view(), Reduce::kMax);
    EXPECT_TRUE(std::isnan(greatest.get(0)));
    EXPECT_EQ(greatest.get(1), 0);
  });
}

// ---- messages

TEST(ThreadCommMessages, ArriveInOrderAndAreNotWaitedFor) {
  run_thread_ranks(3, {}, [](Communicator& world) {
    Rank rank;
    const int next = (world.rank() + 1) % 3, before = (world.rank() + 2) % 3;
    Link links(world, 4, 40);
    for (int i = 0; i < 4; ++i) {
      Tensor message = numbered(10 * world.rank() + i, 10 - i);
      links->send(rank.compute, message.view(), next);
    }
    world.exchange({});  // no rank receives before all have sent
    for (int i = 0; i < 4; ++i) {
      Tensor message(DType::kI32, 10 - i);
      links->recv(rank.compute, message.view(), before);
      EXPECT_EQ(message, numbered(10 * before + i, 10 - i));
    }
  });
}

TEST(ThreadCommMessages, OfOnePeerDoNotWaitForThoseOfAnother) {
  run_thread_ranks(3, {}, [](Communicator& world) {
    Rank rank;
    Link link(world, 1, 4);
    Tensor message = numbered(world.rank(), 1);
    if (world.rank() > 0) return link->send(rank.compute, message.view(), 0);
    for (const int from : {2, 1}) {
      link->recv(rank.compute, message.view(), from);
      EXPECT_EQ(message, numbered(from, 1));
    }
  });
}

// With one slot, each message waits until the previous one has been received, on both kinds of stream.
TEST(ThreadCommMessages, WaitForAFreeSlot) {
  for (const bool queue : {false, true})
    run_thread_ranks(2, {}, [&](Communicator& world) {
      Rank rank;
      Stream& stream = queue ? rank.queue : rank.compute;
      Link link(world, 1, 4000);
      std::vector<Tensor> messages;
      for (int i = 0; i < 30; ++i) messages.push_back(numbered(world.rank() == 0 ? i : 99, 1000));
      for (Tensor& message : messages)
        world.rank() == 0 ? link->send(stream, message.view(), 1) : link->recv(stream, message.view(), 0);
      stream.synchronize();
      for (int i = 0; i < 30; ++i) EXPECT_EQ(messages[static_cast<size_t>(i)], numbered(i, 1000));
    });
}

TEST(ThreadCommMessages, AreReceivedBeforeTheirMemoryEnds) {
  run_thread_ranks(2, {}, [](Communicator& world) {
    Rank rank;
    Tensor memory(DType::kI32, 500), message = numbered(7, 500);
    auto link = world.split("link", 0, world.rank());
    link->set_send_slots(memory.view(), 1);
    if (world.rank() == 0) {
      link->send(rank.compute, message.view(), 1);
      link.reset();
      rank.compute.fill(memory.view(), -1);
    } else {
      std::this_thread::sleep_for(20ms);  // too short a sleep only makes the test weaker
      Tensor received(DType::kI32, 500);
      link->recv(rank.compute, received.view(), 0);
      EXPECT_EQ(received, message);
    }
  });
}

TEST(ThreadCommMessages, ThatDoNotFitAreRefused) {
  const auto send = [](int slots, int64_t elements, int peer) {
    return failure_of(2, {}, [&](Communicator& world) {
      Rank rank;
      Tensor memory(DType::kU8, 100), message = numbered(0, elements);
      if (slots > 0) world.set_send_slots(memory.view(), slots);
      if (world.rank() == 1)
        world.send(rank.compute, message.view(), peer);
      else
        world.exchange({});
    });
  };
  const Failure without = send(0, 1, 0), large = send(4, 7, 0);
  EXPECT_EQ(without.kind, ErrorKind::kInternal);
  EXPECT_TRUE(without.tells("rank 1: world: rank 1: send, call 1: 4 bytes do not fit in 0 slots"))
      << without.message;
  EXPECT_EQ(large.kind, ErrorKind::kInternal);
  EXPECT_TRUE(large.tells("28 bytes do not fit in 4 slots of 25 bytes")) << large.message;
  for (const int peer : {-1, 1, 2}) EXPECT_TRUE(send(1, 1, peer).tells("is not a peer of place 1")) << peer;
}

TEST(ThreadCommMessages, OfAnotherSizeOrTypeNameBothRanks) {
  const auto receive = [](DType dtype, int64_t elements) {
    return failure_of(2, {}, [&](Communicator& world) {
      Rank rank;
      Link link(world, 1, 100);
      Tensor message = numbered(0, 6), received(dtype, elements);
      world.rank() == 0 ? link->send(rank.compute, message.view(), 1)
                        : link->recv(rank.compute, received.view(), 0);
    });
  };
  const Failure size = receive(DType::kI32, 5), type = receive(DType::kF32, 6);
  EXPECT_EQ(size.kind, ErrorKind::kInternal);
  EXPECT_TRUE(size.tells("rank 0 sent 6 i32, rank 1 receives 5 i32")) << size.message;
  EXPECT_TRUE(type.tells("rank 0 sent 6 i32, rank 1 receives 6 fp32")) << type.message;
}

TEST(ThreadCommMessages, KeepTheirSlotsUntilReceived) {
  run_thread_ranks(2, {}, [](Communicator& world) {
    Rank rank;
    Tensor message = numbered(3, 4), memory(DType::kU8, 16);
    const auto link = world.split("link", 0, world.rank());
    link->set_send_slots(memory.view(), 1);
    if (world.rank() == 0) {
      link->send(rank.compute, message.view(), 1);
      EXPECT_EQ(failure_here([&] { link->set_send_slots(memory.view(), 2); }).kind, ErrorKind::kInternal);
    }
    world.exchange({});
    if (world.rank() == 1) link->recv(rank.compute, message.view(), 0);
    world.exchange({});
    link->set_send_slots(memory.view(), 2);
  });
}

// ---- groups

// A grid of 2 x 4 ranks: colors cut it into rows or columns, and keys reverse the order of ranks.
TEST(ThreadCommGroups, SplitByColorInTheOrderOfKeys) {
  run_thread_ranks(8, {}, [](Communicator& world) {
    Rank rank;
    const int row = world.rank() / 4, column = world.rank() % 4;
    const auto rows = world.split("row", row, -column), columns = world.split("column", 100 - column, row),
               same = world.split("same", 0, 5), alone = world.split("alone", world.rank(), 0);
    EXPECT_EQ(rows->name(), "row");
    EXPECT_EQ(rows->size(), 4);
    EXPECT_EQ(rows->rank(), 3 - column);
    EXPECT_EQ(columns->size(), 2);
    EXPECT_EQ(columns->rank(), row);
    EXPECT_EQ(same->rank(), world.rank());  // equal keys keep the order of the ranks
    EXPECT_EQ(alone->size(), 1);

    Tensor gathered(DType::kI32, 4), pair(DType::kI32, 2), mine = numbered(world.rank(), 1);
    rows->all_gather(rank.compute, gathered.view(), mine.view());
    columns->all_gather(rank.compute, pair.view(), mine.view());
    for (int i = 0; i < 4; ++i) EXPECT_EQ(gathered.get(i), 1000 * (4 * row + 3 - i));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(pair.get(i), 1000 * (4 * i + column));
    alone->all_reduce(rank.compute, mine.view(), Reduce::kSum);
    EXPECT_EQ(mine, numbered(world.rank(), 1));

    const auto half = rows->split("half", rows->rank() / 2, rows->rank());  // splits a part of the run
    Tensor sum = numbered(world.rank(), 1);
    half->all_reduce(rank.compute, sum.view(), Reduce::kSum);
    EXPECT_EQ(half->name(), "half");
    EXPECT_EQ(sum.get(0), 1000 * (world.rank() + (world.rank() ^ 1)));
  });
}

TEST(ThreadCommGroups, OfOneHaveAllCalls) {
  const std::unique_ptr<Communicator> alone = make_self_comm("alone");
  EXPECT_EQ(alone->name(), "alone");
  EXPECT_EQ(alone->exchange("mine"), std::vector<std::string>{"mine"});
  EXPECT_EQ(alone->split("part", 3, 1)->name(), "part");
  Rank rank;
  Tensor from = numbered(1, 6), to(DType::kI32, 6);
  alone->all_to_all(rank.queue, to.view(), from.view());
  rank.queue.synchronize();
  EXPECT_EQ(to, from);
  EXPECT_EQ(failure_here([&] { alone->send(rank.compute, from.view(), 0); }).kind, ErrorKind::kInternal);
}

// ---- calls that disagree

/// The failure of a run of three ranks in which rank 2 makes a call that differs from the others' call.
Failure mismatch(const std::function<void(Communicator&, Stream&)>& call,
                 const std::function<void(Communicator&, Stream&)>& other) {
  return failure_of(3, {}, [&](Communicator& world) {
    Rank rank;
    world.exchange({});
    (world.rank() == 2 ? other : call)(world, rank.compute);
  });
}

TEST(ThreadCommMismatch, NamesBothRanksAndTheirCalls) {
  const auto reduce = [](DType dtype, int64_t elements, Reduce how) {
    return [=](Communicator& world, Stream& stream) {
      Tensor tensor(dtype, elements);
      world.all_reduce(stream, tensor.view(), how);
    };
  };
  const auto broadcast = [](int root) {
    return [=](Communicator& world, Stream& stream) {
      Tensor tensor(DType::kF32, 12);
      world.broadcast(stream, tensor.view(), root);
    };
  };
  const auto call = reduce(DType::kF32, 12, Reduce::kSum);
  const struct {
    std::function<void(Communicator&, Stream&)> other;
    const char* told;
  } cases[] = {
      {reduce(DType::kF32, 13, Reduce::kSum), "rank 2 calls all_reduce of 13 fp32 (sum)"},
      {reduce(DType::kBf16, 12, Reduce::kSum), "rank 2 calls all_reduce of 12 bf16 (sum)"},
      {reduce(DType::kF32, 12, Reduce::kMax), "rank 2 calls all_reduce of 12 fp32 (max)"},
      {broadcast(1), "rank 2 calls broadcast of 12 fp32 from place 1"},
      {[](Communicator& world, Stream&) { world.exchange("x"); }, "rank 2 calls exchange;"},
  };
  for (const auto& [other, told] : cases) {
    const Failure failure = mismatch(call, other);
    EXPECT_EQ(failure.kind, ErrorKind::kInternal);
    EXPECT_TRUE(failure.tells("world: call 2: rank 0 calls all_reduce of 12 fp32 (sum), "))
        << failure.message;
    EXPECT_TRUE(failure.tells(told)) << failure.message;
  }
  EXPECT_TRUE(mismatch(broadcast(0), broadcast(1)).tells("from place 0, rank 2 calls broadcast")) << "roots";
}

TEST(ThreadCommMismatch, RefusesTensorsThatDoNotFitTheCall) {
  const auto refused = [](const std::function<void(Communicator&, Stream&)>& call) {
    const Failure failure = failure_of(2, {}, [&](Communicator& world) {
      Rank rank;
      call(world, rank.compute);
    });
    EXPECT_EQ(failure.kind, ErrorKind::kInternal);
    return failure.message;
  };
  Tensor shared[2] = {numbered(0, 6), numbered(1, 6)};
  const auto mine = [&](const Communicator& world) -> Tensor& { return shared[world.rank()]; };
  EXPECT_NE(refused([](Communicator& world, Stream& stream) {
              Tensor in(DType::kF32, 5), out(DType::kF32, 2);
              world.reduce_scatter(stream, out.view(), in.view(), Reduce::kSum);
            }).find("wanted 2 parts of 2 fp32, got 5 fp32"),
            std::string::npos);
  // `mine` lies at the other rank's place in `out`.
  EXPECT_NE(refused([&](Communicator& world, Stream& stream) {
              world.all_gather(stream, mine(world).view(), mine(world).part(1 - world.rank(), 2));
            }).find("overlap outside of part"),
            std::string::npos);
  EXPECT_NE(refused([&](Communicator& world, Stream& stream) {
              world.all_to_all(stream, mine(world).view(), mine(world).view());
            }).find("two separate tensors"),
            std::string::npos);
  EXPECT_NE(refused([](Communicator& world, Stream& stream) {
              Tensor bytes(DType::kU8, 4);
              world.all_reduce(stream, bytes.view(), Reduce::kSum);
            }).find("no sums or maxima of u8"),
            std::string::npos);
  EXPECT_NE(refused([](Communicator& world, Stream& stream) {
              Tensor tensor(DType::kF32, 4);
              world.broadcast(stream, tensor.view(), 2);
            }).find("no place 2 among 2"),
            std::string::npos);
}

}  // namespace
}  // namespace megalith
