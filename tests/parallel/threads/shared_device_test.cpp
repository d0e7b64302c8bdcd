// Ranks that are threads and share one device, which is emulated: each call beside that of the CPU, whose
// tensors the same communicator takes.
#include "libcore/ops/backend/shared_device.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/parallel/device_tensors.h"
#include "tests/parallel/failed_calls.h"
#include "tests/parallel/part_calls.h"
#include "tests/support/emulated_cuda.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

struct Sharer : DeviceTensors {
  Sharer() : DeviceTensors(make_cuda_backend(0)) {}
  Stream queue = backend->make_queue_stream();
};

/// So many ranks, and the order of the device's work.
class SharedDevice : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static int ranks() { return std::get<0>(GetParam()); }
  static void run(const std::function<void(Communicator&, Sharer&)>& body) {
    run_thread_ranks(ranks(), {}, [&](Communicator& world) {
      Sharer rank;
      body(world, rank);
    });
  }
  const test::OwnEmulatedGpus gpus_{static_cast<unsigned>(std::get<1>(GetParam()))};
};
INSTANTIATE_TEST_SUITE_P(Ranks, SharedDevice,
                         testing::Values(std::tuple(2, 1), std::tuple(3, 2), std::tuple(4, 4),
                                         std::tuple(8, 3)),
                         [](const auto& instance) {
                           return concat(std::get<0>(instance.param), "InOrder", std::get<1>(instance.param));
                         });

// Bit for bit: Tensor compares bytes.
TEST_P(SharedDevice, ReductionsHaveTheBitsOfTheCpu) {
  run([](Communicator& world, Sharer& rank) {
    Rank host;
    for (const DType dtype : kReduced)
      for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
        for (const int64_t elements : {0, 1, 5, 64, 65, 1001}) {
          Tensor wanted = tensor_of(dtype, world.rank(), elements);
          const View device = rank.put(wanted);
          world.all_reduce(host.compute, wanted.view(), reduce);
          world.all_reduce(rank.compute, device, reduce);
          EXPECT_EQ(rank.get(device), wanted) << name_of(dtype) << ' ' << elements;
        }
  });
}

TEST_P(SharedDevice, ReduceScatterHasTheBitsOfTheCpuApartAndInPlace) {
  run([](Communicator& world, Sharer& rank) {
    Rank host;
    for (const DType dtype : kReduced)
      for (const int64_t part : {0, 1, 17, 333}) {
        Tensor in = tensor_of(dtype, world.rank(), part * world.size()), wanted(dtype, part);
        const View device = rank.put(in), apart = rank.zeros(dtype, part);
        const View in_place = device.rows(world.rank() * part, (world.rank() + 1) * part);
        world.reduce_scatter(host.compute, wanted.view(), in.view(), Reduce::kSum);
        world.reduce_scatter(rank.compute, apart, device, Reduce::kSum);
        world.reduce_scatter(rank.compute, in_place, device, Reduce::kSum);
        EXPECT_EQ(rank.get(apart), wanted) << name_of(dtype) << ' ' << part;
        EXPECT_EQ(rank.get(in_place), wanted) << name_of(dtype) << ' ' << part;
      }
  });
}

TEST_P(SharedDevice, GathersAndReducesPartsOfSomePlaces) {
  run([](Communicator& world, Sharer& rank) {
    const CallOnCopy on_copy = [&](const Tensor& tensor, const auto& call) {
      const View device = rank.put(tensor);
      call(rank.compute, device);
      return rank.get(device);
    };
    expect_gathered_parts(world, on_copy);
    expect_reduced_parts(world, on_copy);
  });
}

// What the rank enqueues next must not change what the others still read.
TEST_P(SharedDevice, TensorsAreMovedAsOnTheCpuAndMayChangeAtOnce) {
  run([](Communicator& world, Sharer& rank) {
    Rank host;
    const int n = world.size();
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kU8, DType::kI64})
      for (const int64_t part : {0, 1, 250}) {
        Tensor mine = tensor_of(dtype, world.rank(), part), whole = tensor_of(dtype, world.rank(), part * n);
        Tensor gathered(dtype, part * n), swapped(dtype, part * n), spread = whole;
        const View on_device = rank.put(mine), all_on_device = rank.put(whole),
                   spread_there = rank.put(spread), gathered_there = rank.put(gathered),
                   swapped_there = rank.put(swapped);
        world.all_gather(host.compute, gathered.view(), mine.view());
        world.all_to_all(host.compute, swapped.view(), whole.view());
        world.broadcast(host.compute, spread.view(), n - 1);
        world.all_gather(rank.compute, gathered_there, on_device);
        rank.compute.fill(on_device, 1);
        world.all_to_all(rank.compute, swapped_there, all_on_device);
        rank.compute.fill(all_on_device, 1);
        world.broadcast(rank.compute, spread_there, n - 1);
        Tensor spread_before = rank.get(spread_there);
        rank.compute.fill(spread_there, 1);
        EXPECT_EQ(rank.get(gathered_there), gathered) << part;
        EXPECT_EQ(rank.get(swapped_there), swapped) << part;
        EXPECT_EQ(spread_before, spread) << part;
      }
  });
}

// Two groups on two streams of each rank.
TEST_P(SharedDevice, ServesSeveralGroupsAndStreamsAtOnce) {
  constexpr int kRounds = 10;
  run([](Communicator& world, Sharer& rank) {
    const auto beside = world.split("beside", 0, world.rank());
    std::vector<View> sums, greatest;
    for (int i = 0; i < kRounds; ++i) {
      sums.push_back(rank.zeros(DType::kF32, 100));
      greatest.push_back(rank.zeros(DType::kI32, 7));
      rank.compute.fill(sums.back(), world.rank() + i);
      rank.compute.fill(greatest.back(), world.rank() * i);
      rank.queue.wait(rank.compute.record());
      beside->all_reduce(rank.queue, sums.back(), Reduce::kSum);
      world.all_reduce(rank.compute, greatest.back(), Reduce::kMax);
    }
    rank.compute.wait(rank.queue.record());
    const int n = world.size();
    for (int i = 0; i < kRounds; ++i) {
      EXPECT_EQ(rank.get(sums[static_cast<size_t>(i)]).get(99), n * i + n * (n - 1) / 2);
      EXPECT_EQ(rank.get(greatest[static_cast<size_t>(i)]).get(6), (n - 1) * i);
    }
  });
}

// Each rank sends its number and receives that of the one before it, several times in flight, both ways.
TEST_P(SharedDevice, MessagesRunAroundTheRing) {
  run([](Communicator& world, Sharer& rank) {
    constexpr int64_t kElements = 64;  // 256 bytes
    constexpr int kSlots = 3, kMessages = 8;
    const int n = world.size();
    const View slots[2] = {rank.zeros(DType::kU8, kSlots * 4 * kElements),
                           rank.zeros(DType::kU8, kSlots * 4 * kElements)};
    const std::unique_ptr<Communicator> links[2] = {world.split("forward", 0, world.rank()),
                                                    world.split("backward", 0, world.rank())};
    for (const int way : {0, 1}) links[way]->set_send_slots(slots[way], kSlots);
    std::vector<std::pair<View, int>> received;
    const View out = rank.zeros(DType::kF32, kElements);
    for (int number = 0; number < kMessages; ++number)
      for (const int way : {0, 1}) {
        const int step = way == 0 ? 1 : n - 1;
        const int to = (world.rank() + step) % n, from = (world.rank() + n - step) % n;
        const View in = rank.zeros(DType::kF32, kElements);
        rank.compute.fill(out, 100 * world.rank() + number);
        links[way]->send(rank.compute, out, to);
        rank.compute.fill(out, -1);  // the message is in its slot
        links[way]->recv(rank.compute, in, from);
        received.emplace_back(in, 100 * from + number);
      }
    for (const auto& [in, wanted] : received)
      EXPECT_EQ(rank.get(in).all(), std::vector<double>(kElements, wanted));
  });
}

// ---- messages and their memory

TEST(SharedDeviceMessages, AreReadBeforeNewSlotsTakeTheirMemory) {
  for (const unsigned order : {1U, 2U, 3U, 4U, 5U}) {
    const test::OwnEmulatedGpus gpus(order);
    run_thread_ranks(2, {}, [](Communicator& world) {
      Sharer rank;
      const View memory = rank.zeros(DType::kU8, 400), first = rank.zeros(DType::kF32, 100),
                 second = rank.zeros(DType::kF32, 100);
      const auto link = world.split("link", 0, world.rank());
      const auto pass = [&](const View& tensor, double value) {
        link->set_send_slots(memory, 1);
        if (world.rank() == 0) {
          rank.compute.fill(tensor, value);
          link->send(rank.compute, tensor, 1);
        } else {
          link->recv(rank.compute, tensor, 0);
        }
        world.exchange({});
      };
      pass(first, 1);
      pass(second, 2);
      EXPECT_EQ(rank.get(first).all(), std::vector<double>(100, 1));
      EXPECT_EQ(rank.get(second).all(), std::vector<double>(100, 2));
    });
  }
}

// The memory belongs to whoever likes when the communicator is gone, also on a stream that waits for nothing.
TEST(SharedDeviceMessages, AreReadBeforeTheirCommunicatorEnds) {
  for (const unsigned order : {1U, 2U, 3U, 4U, 5U}) {
    const test::OwnEmulatedGpus gpus(order);
    run_thread_ranks(2, {}, [](Communicator& world) {
      Sharer rank;
      const View memory = rank.zeros(DType::kU8, 400), tensor = rank.zeros(DType::kF32, 100);
      auto link = world.split("link", 0, world.rank());
      link->set_send_slots(memory, 1);
      rank.compute.fill(tensor, world.rank() == 0 ? 7 : 0);
      if (world.rank() == 0)
        link->send(rank.compute, tensor, 1);
      else
        link->recv(rank.compute, tensor, 0);
      link.reset();
      rank.queue.fill(memory, 1);
      rank.queue.synchronize();
      EXPECT_EQ(rank.get(tensor).all(), std::vector<double>(100, 7));
    });
  }
}

// ---- what is not a sum of plain numbers

TEST(SharedDeviceSums, AreRoundedOnceAndKeepNaN) {
  const test::OwnEmulatedGpus gpus(1);
  run_thread_ranks(3, {}, [](Communicator& world) {
    Sharer rank;
    // In fp32 1e8 + 1 is 1e8, so only the sum in this order is 0. A bf16 has 8 bits: added alone, each 2^-8
    // would be lost.
    constexpr double kOrdered[] = {1e8, 1, -1e8}, kHalves[] = {1, 0x1p-8, 0x1p-8};
    Tensor exact(DType::kF32, 1), narrow(DType::kBf16, 1), greatest(DType::kF32, 2);
    exact.set(0, kOrdered[world.rank()]);
    narrow.set(0, kHalves[world.rank()]);
    greatest.set(0, world.rank() == 1 ? std::nan("") : 5);
    greatest.set(1, -std::numeric_limits<double>::infinity());
    const View sum = rank.put(exact), rounded = rank.put(narrow), most = rank.put(greatest);
    world.all_reduce(rank.compute, sum, Reduce::kSum);
    world.all_reduce(rank.compute, rounded, Reduce::kSum);
    world.all_reduce(rank.compute, most, Reduce::kMax);
    EXPECT_EQ(rank.get(sum).get(0), 0);
    EXPECT_EQ(rank.get(rounded).get(0), 1 + 0x1p-7);
    EXPECT_TRUE(std::isnan(rank.get(most).get(0)));
    EXPECT_EQ(rank.get(most).get(1), -std::numeric_limits<double>::infinity());
  });
}

// ---- the host

// A host function that waits for another rank would hang where the driver runs one at a time.
TEST(SharedDeviceHost, NeitherWaitsForTheDeviceNorRunsHostFunctions) {
  const test::OwnEmulatedGpus gpus(2);
  run_thread_ranks(2, {}, [](Communicator& world) {
    Sharer rank;
    const View memory = rank.zeros(DType::kU8, 400), tensor = rank.zeros(DType::kF32, 100);
    const auto link = world.split("link", 0, world.rank());
    link->set_send_slots(memory, 1);
    world.all_reduce(rank.compute, tensor, Reduce::kSum);  // makes events
    rank.compute.synchronize();
    world.exchange({});
    const emulator::CallCounts before = test::emulated_controls().counts;
    world.exchange({});
    for (int i = 0; i < 5; ++i) {
      world.all_reduce(rank.compute, tensor, Reduce::kSum);
      if (world.rank() == 0)
        link->send(rank.compute, tensor, 1);
      else
        link->recv(rank.compute, tensor, 0);
    }
    world.exchange({});
    const emulator::CallCounts after = test::emulated_controls().counts;
    world.exchange({});
    EXPECT_EQ(after.waits, before.waits);
    EXPECT_EQ(after.host_functions, before.host_functions);
    EXPECT_EQ(after.allocations, before.allocations);
  });
}

// ---- ends

/// The error that three ranks end with.
std::string error_of(const std::function<void(Communicator& world, Sharer&, const View& tensor)>& body) {
  const test::OwnEmulatedGpus gpus(3);
  try {
    run_thread_ranks(3, {.timeout = 1500ms}, [&](Communicator& world) {
      Sharer rank;
      const View tensor = rank.zeros(DType::kF32, 8);
      world.all_reduce(rank.compute, tensor, Reduce::kSum);
      body(world, rank, tensor);
    });
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(SharedDeviceEnds, NameTheRankThatHasLeft) {
  expect(error_of([](Communicator& world, Sharer& rank, const View& tensor) {
           if (world.rank() != 2) world.all_reduce(rank.compute, tensor, Reduce::kSum);
         }),
         ": all_reduce, call 2: would wait forever for rank 2, which left the group");
}

TEST(SharedDeviceEnds, NameTheRankThatIsLate) {
  FailedCalls calls;
  expect(error_of([&](Communicator& world, Sharer& rank, const View& tensor) {
           if (world.rank() == 2) calls.await(2);
           calls.make([&] { world.all_reduce(rank.compute, tensor, Reduce::kSum); });
         }),
         ": all_reduce, call 2: timed out after 1.5 s waiting for rank 2; ");
}

TEST(SharedDeviceEnds, TellTheErrorOfTheRankThatFails) {
  for (const bool in_message : {false, true})
    expect(error_of([=](Communicator& world, Sharer& rank, const View& tensor) {
             if (world.rank() == 1) fail(ErrorKind::kData, "a bad file");
             if (in_message)
               world.recv(rank.compute, tensor, 1);
             else
               world.all_reduce(rank.compute, tensor, Reduce::kSum);
           }),
           "rank 1: a bad file");
}

TEST(SharedDeviceEnds, NameCallsThatDisagreeAtOnce) {
  expect(error_of([](Communicator& world, Sharer& rank, const View& tensor) {
           if (world.rank() == 1)
             world.all_reduce(rank.compute, tensor, Reduce::kMax);
           else
             world.all_reduce(rank.compute, tensor, Reduce::kSum);
         }),
         "world: call 2: rank 0 calls all_reduce of 8 fp32 (sum), rank 1 calls all_reduce of 8 fp32 (max)");
}

TEST(SharedDeviceEnds, MoreRanksThanTheKernelTakesAreRefused) {
  const test::OwnEmulatedGpus gpus(1);
  Sharer rank;
  std::byte* const at = rank.zeros(DType::kF32, 1).as<std::byte>();
  const std::vector<const std::byte*> from(kMaxSharers + 1, at);
  EXPECT_THROW(reduce_on_cuda(rank.compute, {.dtype = DType::kF32, .elements = 1, .from = from, .to = {at}}),
               Error);
}

}  // namespace
}  // namespace megalith
