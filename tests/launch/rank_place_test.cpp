#include "libcore/launch/rank_place.h"

#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/machine/proc.h"
#include "libcore/parallel/exchange.h"

namespace megalith::test {
namespace {

RankPlace place(const std::string& machine, std::vector<int> cpus) {
  return {.host = "h", .machine = machine, .address = "10.0.0.1", .cpus = std::move(cpus)};
}

TEST(RankPlace, ComesBackFromItsBytes) {
  const RankPlace here = this_place("127.0.0.1");
  EXPECT_FALSE(here.cpus.empty());
  EXPECT_EQ(here.cpu_limit, group_cpu_limit().value_or(0));
  EXPECT_FALSE(here.host.empty());
  EXPECT_FALSE(here.machine.empty());
  const auto back = unpacked<RankPlace>(packed(here));
  EXPECT_EQ(back.host, here.host);
  EXPECT_EQ(back.machine, here.machine);
  EXPECT_EQ(back.address, "127.0.0.1");
  EXPECT_EQ(back.cpus, here.cpus);
  EXPECT_EQ(back.cpu_limit, here.cpu_limit);
  EXPECT_EQ(back.local_rank, -1);
  EXPECT_EQ(unpacked<RankPlace>(packed(this_place("127.0.0.1", 3))).local_rank, 3);
}

TEST(CpuShare, IsWhatTheRanksOfAMachineHaveEach) {
  const std::vector<RankPlace> places = {place("a", {0, 1, 2, 3}), place("a", {0, 1, 2, 3}),
                                         place("b", {0, 1, 2, 3})};
  EXPECT_EQ(cpu_share(places, 0), 2);
  EXPECT_EQ(cpu_share(places, 1), 2);
  EXPECT_EQ(cpu_share(places, 2), 4);
  EXPECT_EQ(ranks_beside(places, 0), 2);
  EXPECT_EQ(ranks_beside(places, 2), 1);
}

/// A rank on machine "a", of which its launcher says this.
RankPlace numbered(const std::string& address, int local_rank) {
  return {.host = "h", .machine = "a", .address = address, .local_rank = local_rank};
}

// mpirun --rank-by may number the ranks of a machine otherwise than the run does.
TEST(NumberBeside, IsTheLaunchersLocalRank) {
  const std::vector<RankPlace> places = {numbered("1", 1), numbered("1", 0), numbered("1", 2)};
  EXPECT_EQ(number_beside(places, 0), 1);
  EXPECT_EQ(number_beside(places, 1), 0);
  EXPECT_EQ(number_beside(places, 2), 2);
}

TEST(NumberBeside, CountsInEachContainerFromZero) {
  const std::vector<RankPlace> places = {numbered("1", 0), numbered("1", 1), numbered("2", 0),
                                         numbered("2", 1)};
  EXPECT_EQ(number_beside(places, 1), 1);
  EXPECT_EQ(number_beside(places, 2), 0);
  EXPECT_EQ(number_beside(places, 3), 1);
}

TEST(NumberBeside, CountsLowerRanksWhereLocalRanksAreUnknownOrTheSame) {
  for (const auto& [first, second] : {std::pair(-1, -1), std::pair(-1, 1), std::pair(0, 0)}) {
    const std::vector<RankPlace> places = {place("b", {}), numbered("1", first), numbered("1", second)};
    EXPECT_EQ(number_beside(places, 0), 0);
    EXPECT_EQ(number_beside(places, 1), 0);
    EXPECT_EQ(number_beside(places, 2), 1);
  }
}

// A pod of 8 CPUs on a machine of 64, with 2 ranks, beside another pod of 1.5 CPUs.
TEST(CpuShare, IsAShareOfWhatTheControlGroupsGrant) {
  std::vector<int> all(64);
  std::iota(all.begin(), all.end(), 0);
  std::vector<RankPlace> places(3, place("a", all));
  for (RankPlace& rank : places) rank.cpu_limit = 8;
  places[2].host = "other";
  places[2].cpu_limit = 1.5;
  EXPECT_EQ(cpu_share(places, 0), 4);
  EXPECT_EQ(cpu_share(places, 1), 4);
  EXPECT_EQ(cpu_share(places, 2), 1);
  EXPECT_EQ(cpu_share({place("a", all)}, 0), 64) << "without a limit";
}

// mpirun may bind each rank to cores of its own; these must not be divided again.
TEST(CpuShare, DividesOnlyTheCoresThatAreShared) {
  EXPECT_EQ(cpu_share({place("a", {0, 1}), place("a", {2, 3})}, 0), 2);
  EXPECT_EQ(cpu_share({place("a", {0, 1, 2}), place("a", {2, 3, 4, 5})}, 0), 2);  // 2.5 CPUs, rounded down
  EXPECT_EQ(cpu_share({place("a", {0, 1, 2}), place("a", {2, 3, 4, 5})}, 1), 3);  // 3.5 CPUs, rounded down
  EXPECT_EQ(cpu_share(std::vector<RankPlace>(3, place("a", {0, 1, 2})), 1), 1);   // three thirds of a CPU
  EXPECT_EQ(cpu_share(std::vector<RankPlace>(8, place("a", {0})), 5), 1);
}

}  // namespace
}  // namespace megalith::test
