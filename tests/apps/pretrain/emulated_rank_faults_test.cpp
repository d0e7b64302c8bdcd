// Ranks with an emulated GPU each, of which one is killed: the others end soon, and name it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/emulated_ranks.h"
#include "tests/support/large.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

struct Kill {
  int ranks;
  const char* layout;
  int culprit;  // the rank that dies
  int number;   // at which call of NCCL, or start or end of a communicator
  const char* where = "";
  int order = 1;
};

constexpr char kPipeline[] = "--pipeline-model-parallel-size 2";
constexpr char kTensor[] = "--tensor-model-parallel-size 2 --sequence-parallel";
constexpr char kZero[] = "--use-distributed-optimizer";

class EmulatedRankFaults : public EmulatedRanksApp {
 protected:
  /// Whether the rank died: a run may have fewer calls.
  bool expect_end_after(const Kill& kill) {
    const EmulatedGpus gpus(kill.order);
    const std::string fault = concat("kill:", kill.culprit, ':', kill.number, kill.where);
    SCOPED_TRACE(concat(kill.layout, ' ', fault, ", order ", kill.order));
    const Variable set("MEGALITH_NCCL_FAULT", fault), killed("MEGALITH_NCCL_STRUCK", dir_ / "killed");
    fs::remove(dir_ / "killed");
    const CommandResult result = train_on_gpus(kill.ranks, kill.layout);
    const auto end = fs::file_time_type::clock::now();
    if (!fs::exists(dir_ / "killed")) {
      EXPECT_EQ(result.code, 0) << result.all();
      return false;
    }
    const std::chrono::duration<double> seconds = end - fs::last_write_time(dir_ / "killed");
    EXPECT_LT(seconds.count(), 5);
    longest_ = std::max(longest_, seconds.count());
    EXPECT_NE(result.code, 0);
    for (int rank = 0; rank < kill.ranks; ++rank)
      if (rank != kill.culprit) expect_named(kill.culprit, rank);
    return true;
  }
  /// A rank whose own wait has found nothing ends with what another one has said.
  void expect_named(int culprit, int rank) const {
    const std::string log = file(concat("logs/workerlog.", rank));
    const std::string lost =
        concat("the connection to rank ", culprit,
               " on [^ ]* is lost: its process ended, or its machine or the network failed");
    EXPECT_TRUE(
        Pattern(concat("error: rank ", rank, ": [a-z: ]*: rank ", rank, " on [^ ]*: [a-z_]*.*: ", lost))
            .is_in(log))
        << log;
    EXPECT_EQ(log.find("a call of the CUDA driver"), std::string::npos) << log;
  }

  double longest_ = 0;  // seconds from a kill to the end of all ranks
};

TEST_F(EmulatedRankFaults, EndTheOthersWithinFiveSeconds) {
  const Kill kills[] = {{2, "", 1, 0, ":start"},
                        {4, "--tensor-model-parallel-size 2", 3, 1, ":start", 2},
                        {2, kPipeline, 0, 20, "", 3},
                        {2, kZero, 1, 9},
                        {2, kTensor, 1, 150, "", 2}};
  for (const Kill& kill : kills) EXPECT_TRUE(expect_end_after(kill)) << "nothing was killed";
}

// The host waits for events there.
TEST_F(EmulatedRankFaults, EndATracedRunToo) {
  EXPECT_TRUE(expect_end_after({2, "--trace trace.json --profile-step-start 1 --profile-step-end 5", 1, 12}));
}

TEST_F(EmulatedRankFaults, EndTheOthersAfterFiftyKills) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  const std::pair<int, const char*> layouts[] = {
      {2, ""},
      {4, ""},
      {2, kZero},
      {2, "--sharding stage2"},
      {2, kTensor},
      {2, kPipeline},
      {2, "--context-parallel-size 2"},
      {8, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"}};
  std::mt19937 random(1);
  int runs = 0;
  for (int killed = 0; killed < 50 && !HasFailure(); ++runs) {
    const auto& [ranks, layout] = layouts[random() % std::size(layouts)];
    const bool starts = random() % 4 == 0;
    killed += expect_end_after({.ranks = ranks,
                                .layout = layout,
                                .culprit = static_cast<int>(random() % static_cast<unsigned>(ranks)),
                                .number = static_cast<int>(random() % (starts ? 6 : 120)),
                                .where = starts ? ":start" : "",
                                .order = 1 + static_cast<int>(random() % 3)});
  }
  std::cout << "50 kills in " << runs << " runs; from a kill to the end of all ranks at most " << longest_
            << " s\n";
}

}  // namespace
}  // namespace megalith::test
