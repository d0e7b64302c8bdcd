// The communicator over devices beside Gloo's, in ranks that are processes, each with an emulated device. The
// fake of NCCL (tests/emulator/nccl) adds in other orders than the CPU does.
#include "libcore/parallel/devices/device_comm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/ops/backend/nccl_plugin.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/linear.h"
#include "tests/parallel/devices/device_rank.h"
#include "tests/parallel/part_calls.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;
using test::Variable;

/// Two, three, four and eight ranks.
class DeviceComm : public DeviceRanks, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DeviceComm, testing::Values(2, 3, 4, 8),
                         [](const auto& instance) { return std::to_string(instance.param); });

// ---- collectives

/// The largest error that sums of a few numbers may have in another order and with other roundings: the
/// fraction of the sum of the numbers' sizes.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return 0x1p-6;
    case DType::kF16:
      return 0x1p-9;
    case DType::kF32:
      return 0x1p-21;
    case DType::kF64:
      return 0x1p-50;
    default:
      return 0;
  }
}

/// The sums of the sizes of all ranks' elements.
std::vector<double> sizes_of(DType dtype, int ranks, int64_t elements) {
  std::vector<double> sizes(static_cast<size_t>(elements), 0.0);
  for (Tensor& one : tensors_of(dtype, ranks, elements))
    for (int64_t i = 0; i < elements; ++i) sizes[static_cast<size_t>(i)] += std::abs(one.get(i));
  return sizes;
}

void expect_near(const Tensor& got, const Tensor& wanted, DType dtype, const std::vector<double>& sizes) {
  const std::vector<double> a = got.all(), b = wanted.all();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i]) || std::isinf(b[i]))
      continue;  // of sums that leave the type's range
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance_of(dtype) * sizes[i]) << name_of(dtype) << " at " << i;
  }
}

/// A call of a communicator on this rank's tensor, and what it gives, for any kind of memory.
using Reduction = std::function<void(Communicator&, Stream&, View tensor, Reduce)>;
const Reduction kReductions[] = {
    [](Communicator& world, Stream& stream, View tensor, Reduce reduce) {
      world.all_reduce(stream, tensor, reduce);
    },
    [](Communicator& world, Stream& stream, View tensor, Reduce reduce) {  // in place
      const int64_t part = tensor.elements() / world.size();
      world.reduce_scatter(stream, tensor.rows(world.rank() * part, (world.rank() + 1) * part), tensor,
                           reduce);
    }};

/// The call on tensors of this type and size gives the device the bits that it gives Gloo's rank. Reductions
/// to a part (all but the first) are compared there.
void expect_bits_of_gloo(Communicator& gloo, Rank& host, DeviceRank& rank, const Reduction& reduction,
                         const Tensor& mine, Reduce reduce) {
  Tensor wanted = mine;
  const View device = rank.put(mine);
  reduction(gloo, host.compute, wanted.view(), reduce);
  reduction(*rank.world, rank.compute, device, reduce);
  Tensor got = rank.get(device);
  const bool all = &reduction == &kReductions[0];
  const int64_t part = wanted.view().elements() / gloo.size();
  const auto compared = [&](Tensor& tensor) {
    return all ? tensor.view() : tensor.view().rows(part * gloo.rank(), part * (gloo.rank() + 1));
  };
  const View a = compared(got), b = compared(wanted);
  EXPECT_EQ(0, a.bytes() == 0 ? 0 : std::memcmp(a.data, b.data, a.bytes()))
      << name_of(a.dtype) << ' ' << part;
}

TEST_P(DeviceComm, ReductionsInRankOrderHaveTheBitsOfGloo) {
  for (const int order : {1, 2, 3}) {
    const test::EmulatedGpus gpus(order);
    expect_fine(GetParam(), [](Communicator& gloo) {
      Rank host;
      DeviceRank rank(gloo, {.in_rank_order = true});
      for (const Reduction& reduction : kReductions)
        for (const DType dtype : kReduced)
          for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
            for (const int64_t part : {0, 1, 7, 333})
              expect_bits_of_gloo(gloo, host, rank, reduction,
                                  tensor_of(dtype, gloo.rank(), part * gloo.size()), reduce);
    });
  }
}

TEST_P(DeviceComm, PartsOfSomePlacesAreGatheredAndReducedInRankOrder) {
  const test::EmulatedGpus gpus(2);
  expect_fine(GetParam(), [](Communicator& gloo) {
    DeviceRank rank(gloo, {.in_rank_order = true});
    const CallOnCopy on_copy = [&](const Tensor& tensor, const auto& call) {
      const View device = rank.put(tensor);
      call(rank.compute, device);
      return rank.get(device);
    };
    expect_gathered_parts(*rank.world, on_copy);
    expect_reduced_parts(*rank.world, on_copy);
  });
}

// In NCCL's order the parts are those of reduce_scatter(), and the others stay.
TEST_P(DeviceComm, PartsOfSomePlacesAreThoseOfReduceScatter) {
  const test::EmulatedGpus gpus(3);
  expect_fine(GetParam(), [](Communicator& gloo) {
    DeviceRank rank(gloo);
    const int n = gloo.size(), last = n - 1;
    constexpr int64_t kPart = 50;
    const Tensor mine = tensor_of(DType::kF32, gloo.rank(), kPart * n);
    const View device = rank.put(mine), wanted = rank.zeros(DType::kF32, kPart);
    rank.world->reduce_scatter(rank.compute, wanted, device, Reduce::kSum);
    rank.world->reduce_parts(rank.compute, device, Reduce::kSum, {last, n});
    Tensor expected = mine;
    Tensor part = rank.get(wanted);
    if (gloo.rank() == last)
      for (int64_t i = 0; i < kPart; ++i) expected.set(last * kPart + i, part.get(i));
    EXPECT_EQ(rank.get(device), expected);
  });
}

// An odd number of elements gives the ranks parts of different sizes.
TEST_P(DeviceComm, AnyNumberOfElementsIsReducedInRankOrder) {
  expect_fine(GetParam(), [](Communicator& gloo) {
    Rank host;
    DeviceRank rank(gloo, {.in_rank_order = true});
    for (const int64_t elements : {1, 2, 5, 64, 1001}) {
      Tensor wanted = tensor_of(DType::kF32, gloo.rank(), elements);
      const View device = rank.put(wanted);
      gloo.all_reduce(host.compute, wanted.view(), Reduce::kSum);
      rank.world->all_reduce(rank.compute, device, Reduce::kSum);
      EXPECT_EQ(rank.get(device), wanted) << elements;
    }
  });
}

TEST_P(DeviceComm, ReductionsAreThoseOfGlooButForRounding) {
  const test::EmulatedGpus gpus(3);
  expect_fine(GetParam(), [](Communicator& gloo) {
    Rank host;
    DeviceRank rank(gloo);
    for (const DType dtype : kReduced)
      for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
        for (const int64_t elements : {0, 1, 5, 1000}) {
          Tensor wanted = tensor_of(dtype, gloo.rank(), elements);
          const View device = rank.put(wanted);
          gloo.all_reduce(host.compute, wanted.view(), reduce);
          rank.world->all_reduce(rank.compute, device, reduce);
          expect_near(rank.get(device), wanted, dtype, sizes_of(dtype, gloo.size(), elements));
        }
  });
}

TEST_P(DeviceComm, TensorsAreMovedAsByGloo) {
  const test::EmulatedGpus gpus(2);
  expect_fine(GetParam(), [](Communicator& gloo) {
    Rank host;
    DeviceRank rank(gloo);
    const int n = gloo.size();
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kU8, DType::kI64})
      for (const int64_t part : {0, 1, 250}) {
        Tensor mine = tensor_of(dtype, gloo.rank(), part), whole = tensor_of(dtype, gloo.rank(), part * n);
        Tensor gathered(dtype, part * n), swapped(dtype, part * n), spread = whole;
        const View on_device = rank.put(mine), all_on_device = rank.put(whole),
                   spread_on_device = rank.put(spread);
        const View gathered_there = rank.put(gathered), swapped_there = rank.put(swapped);
        gloo.all_gather(host.compute, gathered.view(), mine.view());
        gloo.all_to_all(host.compute, swapped.view(), whole.view());
        gloo.broadcast(host.compute, spread.view(), n - 1);
        rank.world->all_gather(rank.compute, gathered_there, on_device);
        rank.world->all_to_all(rank.compute, swapped_there, all_on_device);
        rank.world->broadcast(rank.compute, spread_on_device, n - 1);
        EXPECT_EQ(rank.get(gathered_there), gathered) << part;
        EXPECT_EQ(rank.get(swapped_there), swapped) << part;
        EXPECT_EQ(rank.get(spread_on_device), spread) << part;
      }
  });
}

TEST_F(DeviceRanks, SplitGivesTheGroupsOfGloo) {
  expect_fine(4, [](Communicator& gloo) {
    DeviceRank rank(gloo);
    const auto pair = rank.world->split("pair", gloo.rank() % 2, -gloo.rank());
    EXPECT_EQ(pair->size(), 2);
    EXPECT_EQ(pair->rank(), gloo.rank() < 2 ? 1 : 0);
    EXPECT_EQ(pair->name(), "pair");
    Tensor mine(DType::kF32, 1);
    mine.set(0, gloo.rank());
    const View one = rank.put(mine), both = rank.zeros(DType::kF32, 2);
    pair->all_gather(rank.compute, both, one);
    const double low = gloo.rank() % 2;
    EXPECT_EQ(rank.get(both).all(), (std::vector<double>{low + 2, low}));
    const auto alone = pair->split("alone", gloo.rank(), 0);
    EXPECT_EQ(alone->size(), 1);
    alone->all_reduce(rank.compute, one, Reduce::kSum);
    EXPECT_EQ(rank.get(one), mine);
    EXPECT_EQ(rank.world->exchange("x").size(), 4U);
  });
}

// ---- pipelines

/// Each rank sends its number and receives that of the one before it, several times in flight, in an
/// interleaved pipeline's order: the last rank's messages go to the first one.
TEST_P(DeviceComm, MessagesRunAroundTheRingInEveryOrderOfWork) {
  for (const int order : {1, 2, 3}) {
    const test::EmulatedGpus gpus(order);
    expect_fine(GetParam(), [](Communicator& gloo) {
      DeviceRank rank(gloo);
      constexpr int64_t kElements = 64;  // 256 bytes
      constexpr int kSlots = 3, kMessages = 8;
      const View slots[2] = {rank.zeros(DType::kU8, kSlots * 4 * kElements),
                             rank.zeros(DType::kU8, kSlots * 4 * kElements)};
      const std::unique_ptr<Communicator> links[2] = {
          rank.world->split({"forward", GroupRole::kPipelineForward}, 0, gloo.rank()),
          rank.world->split({"backward", GroupRole::kPipelineBackward}, 0, gloo.rank())};
      for (const int way : {0, 1}) links[way]->set_send_slots(slots[way], kSlots);
      const auto message = [](int from, int number) {
        Tensor made(DType::kF32, kElements);
        for (int64_t i = 0; i < kElements; ++i) made.set(i, 100 * from + number);
        return made;
      };
      std::vector<std::pair<View, Tensor>> received;
      for (int number = 0; number < kMessages; ++number)
        for (const int way : {0, 1}) {
          const int step = way == 0 ? 1 : gloo.size() - 1;
          const int to = (gloo.rank() + step) % gloo.size(),
                    from = (gloo.rank() + gloo.size() - step) % gloo.size();
          const View out = rank.put(message(gloo.rank(), number)), in = rank.zeros(DType::kF32, kElements);
          links[way]->send(rank.compute, out, to);
          rank.compute.fill(out, -1);  // the message is in its slot
          links[way]->recv(rank.compute, in, from);
          received.emplace_back(in, message(from, number));
        }
      for (const auto& [in, wanted] : received) EXPECT_EQ(rank.get(in), wanted);
    });
  }
}

// Rank 1 receives the message late. Too short a sleep only makes the test weaker.
TEST_F(DeviceRanks, SlotsMayChangeWhenTheirMessagesHaveBeenReceived) {
  expect_fine(2, [](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View slots[] = {rank.zeros(DType::kU8, 64), rank.zeros(DType::kU8, 128)};
    const auto link = rank.world->split({"forward", GroupRole::kPipelineForward}, 0, gloo.rank());
    for (const int64_t elements : {8, 16}) {
      link->set_send_slots(slots[elements / 16], 2);
      const Tensor sent = tensor_of(DType::kF32, 0, elements);
      if (gloo.rank() == 0) {
        link->send(rank.compute, rank.put(sent), 1);
        continue;
      }
      std::this_thread::sleep_for(300ms);
      const View got = rank.zeros(DType::kF32, elements);
      link->recv(rank.compute, got, 0);
      EXPECT_EQ(rank.get(got), sent);
    }
  });
}

TEST_F(DeviceRanks, AMessageMustFitAndGoToTheNeighbour) {
  const auto ends = Processes(3).run([](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View slots = rank.zeros(DType::kU8, 64), message = rank.zeros(DType::kF32, 8);
    const auto link = rank.world->split({"forward", GroupRole::kPipelineForward}, 0, gloo.rank());
    link->set_send_slots(slots, 2);
    if (gloo.rank() == 0) link->send(rank.compute, message, 2);
    gloo.exchange("");
  });
  EXPECT_TRUE(ends[0].is_exit(70)) << ends[0].status << ends[0].error;
  EXPECT_TRUE(
      contains(ends[0].error, "forward: rank 0 on host h0: send, call 1: wanted the neighbour, place 1"))
      << ends[0].error;
}

// ---- the library

TEST_F(DeviceRanks, SayHowToGetNcclWhereItIsUnusableOrOld) {
  const auto expect = [](const std::string& words) {
    const auto ends = Processes(2).run([](Communicator& gloo) { const DeviceRank rank(gloo); });
    EXPECT_TRUE(ends[0].is_exit(69)) << ends[0].status << ends[0].error;
    EXPECT_TRUE(contains(ends[0].error, words)) << ends[0].error;
  };
  {
    const Variable old("MEGALITH_NCCL_VERSION", "22105");
    expect("is NCCL 2.21.5; install 2.22.0 or later");
  }
  const test::TempDir dir;
  std::filesystem::create_symlink(test::emulated_cuda_folder() + "/libmegalith_cuda.so",
                                  dir / "libmegalith_cuda.so");
  std::ofstream(dir / "libnccl.so.2").close();  // no library
  const Variable folder("MEGALITH_CUDA_LIBS", dir.path().string());
  expect("several ranks need NCCL, and libnccl.so.2 cannot be loaded");
}

// A communicator takes memory of the device, and seconds to start.
TEST_F(DeviceRanks, StartNoGroupThatNothingUses) {
  const test::TempDir dir;
  const std::string counts_file = dir / "counts.jsonl";
  const Variable counts("MEGALITH_NCCL_COUNTS", counts_file);
  expect_fine(3, [](Communicator& gloo) {
    DeviceRank rank(gloo, {.rings = false});
    const auto alone = rank.world->split("alone", gloo.rank(), 0);
    EXPECT_EQ(alone->size(), 1);
    const View slots = rank.zeros(DType::kU8, 64), message = rank.zeros(DType::kF32, 8);
    const std::unique_ptr<Communicator> links[2] = {
        rank.world->split({"forward", GroupRole::kPipelineForward}, 0, gloo.rank()),
        rank.world->split({"backward", GroupRole::kPipelineBackward}, 0, gloo.rank())};
    for (const auto& link : links) link->set_send_slots(slots, 2);
    if (gloo.rank() == 2) {
      EXPECT_THROW(links[0]->send(rank.compute, message, 0), Error);
    }
    if (gloo.rank() == 0) {
      EXPECT_THROW(links[0]->recv(rank.compute, message, 2), Error);
    }
    if (gloo.rank() == 0) {
      EXPECT_THROW(links[1]->send(rank.compute, message, 2), Error);
    }
  });
  std::map<std::string, int> groups;
  for (const Json& count : test::json_lines(read_file(counts_file), counts_file))
    ++groups[count["group"].as_string()];
  EXPECT_EQ(groups, (std::map<std::string, int>{{"world", 3}, {"forward", 4}, {"backward", 4}}));
}

/// The names of the groups of NCCL that a rank of a run of so many ranks starts, where it splits the world
/// into groups of all ranks in the same order or, for this role, in reverse.
std::vector<std::string> started_groups(int ranks, const std::vector<GroupName>& names,
                                        GroupRole reversed = GroupRole::kOther) {
  const test::TempDir dir;
  const std::string counts_file = dir / "counts.jsonl";
  const Variable counts("MEGALITH_NCCL_COUNTS", counts_file);
  expect_fine(ranks, [&](Communicator& gloo) {
    DeviceRank rank(gloo);
    std::vector<std::unique_ptr<Communicator>> groups;
    for (const GroupName& name : names)
      groups.push_back(rank.world->split(name, 0, name.role == reversed ? -gloo.rank() : gloo.rank()));
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(groups[i]->name(), names[i].text);
  });
  std::vector<std::string> started;
  for (const Json& count : test::json_lines(read_file(counts_file), counts_file))
    if (count["rank"].as_int() == 0) started.push_back(count["group"].as_string());
  std::sort(started.begin(), started.end());
  return started;
}

TEST_F(DeviceRanks, OfEqualGroupsStartOne) {
  using Names = std::vector<std::string>;
  const GroupName data{"data", GroupRole::kData}, tensor{"tensor", GroupRole::kTensor},
      embedding{"embedding", GroupRole::kEmbedding};
  EXPECT_EQ(started_groups(2, {tensor, data, embedding}), Names{"world"});
  EXPECT_EQ(started_groups(3, {data}), Names{"world"});
  // Calls of a context group must not wait for the sums of buckets.
  EXPECT_EQ(started_groups(2, {data, {"context", GroupRole::kContext}}), (Names{"context", "world"}));
  EXPECT_EQ(started_groups(2, {data}, GroupRole::kData), (Names{"data", "world"})) << "another order";
  EXPECT_EQ(started_groups(2, {"any"}), (Names{"any", "world"}));
}

// On two streams, as the sums of buckets run beside the compute stream's work.
TEST_F(DeviceRanks, EqualGroupsCallBesideEachOtherInEveryOrderOfWork) {
  for (const int order : {1, 2, 3}) {
    const test::EmulatedGpus gpus(order);
    expect_fine(3, [](Communicator& gloo) {
      Rank host;
      DeviceRank rank(gloo, {.in_rank_order = true});
      const auto data = rank.world->split({"data", GroupRole::kData}, 0, gloo.rank());
      Stream low = rank.backend->make_queue_stream();
      std::vector<std::pair<View, Tensor>> sums;
      for (int call = 0; call < 6; ++call) {
        Tensor wanted = tensor_of(DType::kF32, gloo.rank() + call, 40);
        const View device = rank.put(wanted);
        low.wait(rank.compute.record());
        (call % 2 == 0 ? *data : *rank.world)
            .all_reduce(call % 2 == 0 ? low : rank.compute, device, Reduce::kSum);
        rank.compute.wait(low.record());
        gloo.all_reduce(host.compute, wanted.view(), Reduce::kSum);
        sums.emplace_back(device, wanted);
      }
      for (const auto& [device, wanted] : sums) EXPECT_EQ(rank.get(device), wanted);
    });
  }
}

TEST_F(DeviceRanks, CountTheBytesOfEachGroup) {
  const test::TempDir dir;
  const std::string counts_file = dir / "counts.jsonl";
  const Variable counts("MEGALITH_NCCL_COUNTS", counts_file);
  expect_fine(2, [](Communicator& gloo) {
    DeviceRank rank(gloo);
    const View tensor = rank.zeros(DType::kF32, 96);
    const auto pair = rank.world->split("pair", 0, gloo.rank());
    rank.world->all_reduce(rank.compute, tensor, Reduce::kSum);
    pair->all_gather(rank.compute, tensor, tensor.rows(48 * gloo.rank(), 48 * (gloo.rank() + 1)));
    rank.compute.synchronize();
  });
  std::map<std::string, int64_t> bytes;
  for (const Json& count : test::json_lines(read_file(counts_file), counts_file))
    bytes[count["group"].as_string() + std::to_string(count["rank"].as_int())] += count["bytes"].as_int();
  EXPECT_EQ(bytes, (std::map<std::string, int64_t>{
                       {"world0", 384}, {"world1", 384}, {"pair0", 384}, {"pair1", 384}}));
}

}  // namespace
}  // namespace megalith
