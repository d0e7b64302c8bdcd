#include "libcore/train/run_rules.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/environment.h"
#include "tests/train/tiny_run.h"

namespace megalith {
namespace {

using test::Variable;

/// Without what a launcher of the tests may have set.
class CheckRun : public testing::Test {
 protected:
  CheckRun() {
    for (const char* name : {"WORLD_SIZE", "RANK", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
                             "SLURM_STEP_ID", "PADDLE_TRAINERS_NUM", "RANK_SIZE"})
      hidden_.push_back(std::make_unique<Variable>(name, ""));
    config_.data.data_path = {"c"};
  }
  PretrainConfig config_ = test::tiny_config();

  /// The complaints about config_ with these sizes, one a line.
  std::string complaints(const ParallelConfig& sizes = {}) {
    config_.parallel = sizes;
    config_.parallel.finish();
    Problems problems;
    check_run(config_, problems);
    std::string lines;
    for (const std::string& line : problems.list()) lines += (lines.empty() ? "" : "\n") + line;
    return lines;
  }

 private:
  std::vector<std::unique_ptr<Variable>> hidden_;
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

TEST_F(CheckRun, RefusesContextAndExpertRanks) {
  EXPECT_EQ(complaints({.context = 2, .expert = 4}),
            "--context-parallel-size 2 is not supported yet; leave it at 1\n"
            "--expert-model-parallel-size 4 is not supported yet; leave it at 1");
}

TEST_F(CheckRun, RefusesThreadsAsRanksOnADevice) {
  config_.train.device = "cuda";
  EXPECT_EQ(complaints(), "");
  EXPECT_EQ(complaints({.nproc = 2}),
            "--nproc 2 and --device cuda contradict each other: the ranks of one process compute on the CPU; "
            "give --device cpu");
}

TEST_F(CheckRun, RefusesTheProcessesOfALauncher) {
  const auto complains = [&](const char* name, const char* value) {
    const Variable variable(name, value);
    const std::string text = complaints();
    if (text.empty()) return false;
    EXPECT_TRUE(text.starts_with(std::string(name) + "=" + value + " in the environment: a launcher"))
        << text;
    return true;
  };
  for (const char* name :
       {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PADDLE_TRAINERS_NUM", "RANK_SIZE"}) {
    EXPECT_TRUE(complains(name, "8")) << name;
    EXPECT_FALSE(complains(name, "1")) << name;
    EXPECT_FALSE(complains(name, "x")) << name;
  }
  EXPECT_TRUE(complains("RANK", "1"));
  EXPECT_FALSE(complains("RANK", "0"));
  EXPECT_FALSE(complains("SLURM_NTASKS", "4"));  // a batch script, which runs once
  const Variable step("SLURM_STEP_ID", "0");
  EXPECT_TRUE(complains("SLURM_NTASKS", "4"));
}

TEST_F(CheckRun, NamesALauncherOnce) {
  const Variable world("WORLD_SIZE", "2"), rank("RANK", "1");
  EXPECT_EQ(
      complaints({.nproc = 2}),
      "WORLD_SIZE=2 in the environment: a launcher started several processes, but all ranks are threads "
      "of one process; start one process without the launcher and give --nproc N");
}

}  // namespace
}  // namespace megalith
