#include "libcore/train/run/run_rules.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

class CheckRun : public testing::Test {
 protected:
  CheckRun() { config_.data.data_path = {"c"}; }
  PretrainConfig config_ = test::tiny_config();

  /// The problems of config_ with these sizes, one per line.
  std::string complaints(const ParallelConfig& sizes = {}) {
    config_.parallel = sizes;
    config_.parallel.finish();
    Problems problems;
    check_run(config_, problems);
    return problems.text();
  }
};

TEST_F(CheckRun, TakesALayoutOfAsManyRanksAsThreads) {
  EXPECT_EQ(complaints(), "");
  EXPECT_EQ(complaints({.tensor = 2, .pipeline = 2, .nproc = 8}), "");
  EXPECT_EQ(complaints({.data = 2, .nproc = 2}), "");
  EXPECT_EQ(complaints({.nproc = 1}), "");
}

TEST_F(CheckRun, SaysHowManyThreadsALayoutNeeds) {
  EXPECT_EQ(complaints({.tensor = 2, .pipeline = 3}),
            "the layout needs 6 ranks (tensor 2 * pipeline 3 * data 1) and --nproc gives 1; give --nproc 6");
  EXPECT_EQ(complaints({.data = 4}),
            "the layout needs 4 ranks (tensor 1 * pipeline 1 * data 4) and --nproc gives 1; give --nproc 4");
  EXPECT_EQ(complaints({.tensor = 2, .nproc = 2, .world = 4}),
            "the layout needs 4 ranks (tensor 2 * pipeline 1 * data 2) and --nproc gives 2; give --nproc 4");
  EXPECT_EQ(complaints({.tensor = 2, .nproc = 4, .local_world = 2}),
            "--local-world-size 2: all 4 ranks are threads of this process; leave it out");
}

TEST_F(CheckRun, RefusesExpertRanks) {
  EXPECT_EQ(complaints({.expert = 4}), "--expert-model-parallel-size 4 is not supported yet; leave it at 1");
}

TEST_F(CheckRun, CountsContextRanks) {
  EXPECT_EQ(complaints({.context = 2, .nproc = 4}), "");
  EXPECT_EQ(complaints({.context = 2}),
            "the layout needs 2 ranks (tensor 1 * pipeline 1 * context 2 * data 1) and --nproc gives 1; give "
            "--nproc 2");
}

TEST_F(CheckRun, TakesThreadsAsRanksOnDevices) {
  config_.train.device = "cuda";
  EXPECT_EQ(complaints(), "");
  EXPECT_EQ(complaints({.nproc = 2}), "");
}

TEST_F(CheckRun, TakesALayoutOfAsManyRanksAsProcesses) {
  EXPECT_EQ(complaints({.tensor = 2, .pipeline = 2, .processes = 8}), "");
  // Each machine runs only some of the processes.
  EXPECT_EQ(complaints({.local_world = 2, .processes = 4}), "");
  EXPECT_EQ(
      complaints({.tensor = 2, .world = 4, .processes = 2}),
      "the layout needs 4 ranks (tensor 2 * pipeline 1 * data 2) and 2 processes were started; start 4");
  config_.train.device = "cuda";
  EXPECT_EQ(complaints({.processes = 1}), "");
  EXPECT_EQ(complaints({.processes = 2}), "");
}

}  // namespace
}  // namespace megalith
