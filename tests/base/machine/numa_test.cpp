#include "libcore/base/machine/numa.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

#include "tests/support/files.h"

namespace megalith {
namespace {

std::vector<int> allowed() {
  cpu_set_t mask;
  EXPECT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &mask)) cpus.push_back(cpu);
  return cpus;
}

/// A folder with the tree of a machine's nodes.
class NumaNodes : public testing::Test {
 protected:
  void node(const std::string& name, const std::string& cpus) const {
    const std::filesystem::path folder = dir_.path() / "sys/devices/system/node" / name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "cpulist") << cpus << "\n";
  }
  std::string root() const { return dir_.path().string(); }

 private:
  test::TempDir dir_;
};

TEST_F(NumaNodes, AreOneWhereTheSystemNamesNone) {
  const std::vector<NumaNode> nodes = numa_nodes(root());
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].cpus, allowed());
}

// Node 1 has memory only, node 10 CPUs that this process may not use, and the names of others are no nodes.
TEST_F(NumaNodes, HaveTheCpusOnWhichThisProcessMayRun) {
  const std::vector<int> cpus = allowed();
  const std::string first = std::to_string(cpus.front()), last = std::to_string(cpus.back());
  node("node2", first + "-" + first);
  node("node0", std::to_string(cpus.back() + 1) + "-5000," + last);
  node("node1", "");
  node("node10", std::to_string(cpus.back() + 1) + "-" + std::to_string(cpus.back() + 8));
  node("power", first);
  const std::vector<NumaNode> nodes = numa_nodes(root());
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].number, 0);
  EXPECT_EQ(nodes[0].cpus, std::vector<int>{cpus.back()});
  EXPECT_EQ(nodes[1].number, 2);
  EXPECT_EQ(nodes[1].cpus, std::vector<int>{cpus.front()});
}

/// The number of the node of each of `ranks` ranks; -1: none.
std::vector<int> places(const std::vector<NumaNode>& nodes, int ranks, int threads) {
  std::vector<int> numbers;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto node = node_of_rank(nodes, rank, ranks, threads);
    numbers.push_back(node ? node->number : -1);
  }
  return numbers;
}

TEST(NodeOfRank, IsSharedByNeighbours) {
  const std::vector<NumaNode> two{{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}}, one{{0, {0, 1, 2, 3}}};
  using Places = std::vector<int>;
  EXPECT_EQ(places(two, 2, 4), (Places{0, 1}));
  EXPECT_EQ(places(two, 4, 2), (Places{0, 0, 1, 1}));
  EXPECT_EQ(places(two, 3, 2), (Places{0, 0, 1}));
  EXPECT_EQ(places(two, 3, 3), (Places{-1, -1, 1})) << "two ranks of three threads need more than four CPUs";
  EXPECT_EQ(places(two, 1, 8), (Places{-1})) << "one rank works on both nodes";
  EXPECT_EQ(places(one, 2, 2), (Places{-1, -1}));
}

TEST(StayOn, KeepsAThreadAndThoseThatItStartsOnItsCpus) {
  const int last = allowed().back();
  std::vector<int> own, started;
  std::thread([&] {
    EXPECT_TRUE(stay_on({.number = 0, .cpus = {last}}));
    own = allowed();
    std::thread([&] { started = allowed(); }).join();
    EXPECT_FALSE(stay_on({.number = 1, .cpus = {}}));
  }).join();
  EXPECT_EQ(own, std::vector<int>{last});
  EXPECT_EQ(started, std::vector<int>{last});
}

}  // namespace
}  // namespace megalith
