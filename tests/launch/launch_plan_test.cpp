#include "libcore/launch/launch_plan.h"

#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/launch/late_name.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith::test {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchPlan planned(const LaunchConfig& config, int nproc, const Variables& variables = {}) {
  return plan_launch(config, nproc, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string complaint(const LaunchConfig& config, int nproc, const Variables& variables = {}) {
  try {
    planned(config, nproc, variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "nothing was wrong";
}

const Variables kRank = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}};

TEST(LaunchPlan, LeavesThreadsAlone) {
  EXPECT_EQ(planned({}, 2).world(), 0);
  EXPECT_EQ(planned({.task_type = "llmacc.megatron.GPT"}, 0).world(), 0);
}

TEST(LaunchPlan, SaysThatOneNumberIsADeviceAndNotACount) {
  const auto notice = [](const char* gpus) {
    const LogLines log;
    planned({.gpus = gpus}, 0);
    return log.lines.empty() ? std::string() : log.lines.front();
  };
  EXPECT_EQ(notice("2"), "--gpus 2: device 2, one rank; 2 ranks: --gpus 0,1");
  EXPECT_EQ(notice("8"), "--gpus 8: device 8, one rank; 8 ranks: --gpus 0,1,…,7");
  EXPECT_EQ(notice("3"), "--gpus 3: device 3, one rank; 3 ranks: --gpus 0,1,2");
  EXPECT_EQ(notice("1"), "");
  EXPECT_EQ(notice("0"), "");
  EXPECT_EQ(notice("2,3"), "");
}

TEST(LaunchPlan, IsARankUnderALauncher) {
  const LaunchPlan plan = planned({.task_type = "other"}, 0, kRank);
  ASSERT_TRUE(plan.rank);
  EXPECT_EQ(plan.rank->rank, 1);
  EXPECT_EQ(plan.world(), 2);
}

TEST(LaunchPlan, RefusesToStartRanksBesideALauncher) {
  EXPECT_NE(complaint({}, 2, kRank).find("--nproc 2 and the environment contradict"), std::string::npos);
  EXPECT_NE(complaint({.gpus = "0,1"}, 0, kRank).find("--gpus 0,1 and the environment"), std::string::npos);
  EXPECT_NE(complaint({.servers = 2, .server = 1}, 0, kRank).find("--nnodes 2"), std::string::npos);
  const Variables two = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}};
  EXPECT_NE(complaint({}, 2, two).find("--nproc 2 and mpirun contradict"), std::string::npos);
  Variables started = kRank;  // the program that started this rank has already applied the options
  started[kStartedHere] = "1";
  EXPECT_EQ(planned({.gpus = "0,1"}, 2, started).rank->launcher, "this program");
}

TEST(LaunchPlan, RunsThreadsInTheOnlyTaskOfALauncher) {
  const std::vector<Variables> alone = {
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
      {{"RANK", "0"},
       {"WORLD_SIZE", "1"},
       {"LOCAL_RANK", "0"},
       {"LOCAL_WORLD_SIZE", "1"},
       {"TORCHELASTIC_RUN_ID", "r"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", "29500"}},
      {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
      {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}},
      {{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINERS_NUM", "1"}},
      {{"RANK_ID", "0"}, {"RANK_SIZE", "1"}}};
  for (const Variables& variables : alone) {
    const std::string name = variables.begin()->first;
    const LaunchPlan plan = planned({}, 2, variables);
    EXPECT_FALSE(plan.rank) << name;
    EXPECT_FALSE(plan.server) << name;
    EXPECT_TRUE(planned({}, 0, variables).rank) << name;  // without --nproc: one rank, as the launcher says
    EXPECT_NE(complaint({.gpus = "0,1"}, 2, variables).find("contradict"), std::string::npos) << name;
    EXPECT_NE(complaint({.servers = 2, .server = 0}, 2, variables).find("contradict"), std::string::npos)
        << name;
  }
}

// Only who started the ranks can start them again.
TEST(LaunchPlan, RestartsOnlyProcessesOfItsOwn) {
  const auto refused = [](const Variables& variables, const LaunchConfig& config = {.restarts = 3}) {
    return complaint(config, 0, variables);
  };
  EXPECT_EQ(complaint({.restarts = 3}, 2),
            "--restarts 3 is for ranks that are processes; give --gpus or --nnodes, or leave it out");
  EXPECT_NE(refused(kRank).find("--restarts 3 and the environment contradict"), std::string::npos);
  Variables torchrun = kRank;
  torchrun["TORCHELASTIC_RUN_ID"] = "r";
  EXPECT_NE(refused(torchrun).find("give torchrun --max-restarts"), std::string::npos);
  EXPECT_NE(refused({{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINERS_NUM", "1"}}).find("--max_restart"),
            std::string::npos);
  EXPECT_NE(
      refused({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}}).find("srun again"),
      std::string::npos);
  for (const char* library : {"OMPI_COMM_WORLD_", "PMI_"})
    EXPECT_NE(refused({{library + std::string("RANK"), "0"}, {library + std::string("SIZE"), "1"}})
                  .find("mpirun again"),
              std::string::npos);
  EXPECT_NE(refused({{"RANK_ID", "0"}, {"RANK_SIZE", "1"}}).find("the rank table contradict"),
            std::string::npos);
  EXPECT_TRUE(planned({.gpus = "0", .restarts = 3}, 0).server);
  EXPECT_TRUE(planned({.servers = 2, .server = 0, .address = "a", .restarts = 3}, 0).server);
  Variables started = kRank;
  started[kStartedHere] = "2";
  EXPECT_TRUE(planned({.gpus = "0,1", .restarts = 3}, 0, started).rank);
}

TEST(LaunchPlan, StartsARankForEachDevice) {
  const LaunchPlan plan = planned({.gpus = "4, 5"}, 0);
  ASSERT_TRUE(plan.server);
  EXPECT_EQ(plan.server->count, 2);
  EXPECT_EQ(plan.server->world, 2);
  EXPECT_EQ(plan.server->devices, (std::vector<std::string>{"4", "5"}));
  EXPECT_EQ(plan.server->address, "127.0.0.1");
  EXPECT_GT(plan.server->port, 0);
  EXPECT_TRUE(plan.server->any_port);
  EXPECT_FALSE(planned({.gpus = "4,5", .port = 77}, 0).server->any_port);
  EXPECT_GE(plan.server->token.size(), 32U);
  EXPECT_NE(plan.server->token, planned({.gpus = "4,5"}, 0).server->token);
  EXPECT_TRUE(planned({.gpus = "4,5"}, 0, {{"MEGALITH_JOB_TOKEN", "t"}}).server->token.empty());
  // A job's id is no secret, so a token is drawn.
  EXPECT_FALSE(planned({.gpus = "4,5"}, 0, {{"SLURM_JOB_ID", "7"}}).server->token.empty());
  for (const char* wrong : {"", "4,", "a", "-1", "3,3"})
    EXPECT_NE(complaint({.gpus = wrong}, 0).find("--gpus"), std::string::npos) << wrong;
  EXPECT_NE(complaint({.gpus = "4,5"}, 3).find("--nproc 3 and --gpus 4,5"), std::string::npos);
}

TEST(LaunchPlan, CountsOverServers) {
  const LaunchPlan plan = planned({.servers = 3, .server = 1, .address = "10.0.0.1", .port = 77}, 4);
  ASSERT_TRUE(plan.server);
  EXPECT_EQ(plan.server->first, 4);
  EXPECT_EQ(plan.server->count, 4);
  EXPECT_EQ(plan.server->world, 12);
  EXPECT_EQ(plan.server->address, "10.0.0.1");
  EXPECT_EQ(plan.server->port, 77);
  EXPECT_FALSE(plan.server->any_port);
  EXPECT_TRUE(plan.server->token.empty());
  EXPECT_EQ(
      planned({.servers = 2, .server = 0}, 1, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "9"}}).server->port, 9);
  EXPECT_NE(complaint({.servers = 2}, 2).find("needs --node-rank"), std::string::npos);
  EXPECT_NE(complaint({.servers = 2, .server = 2, .address = "a"}, 2).find("--node-rank 2"),
            std::string::npos);
  EXPECT_NE(complaint({.servers = 2, .server = 1}, 2).find("needs --master-addr"), std::string::npos);
}

TEST(LaunchPlan, RefusesWhatNobodyWouldObey) {
  EXPECT_NE(complaint({.server = 1}, 2).find("--node-rank 1 without a launcher"), std::string::npos);
  EXPECT_NE(complaint({.address = "a"}, 2).find("--master-addr a without"), std::string::npos);
  EXPECT_NE(complaint({.port = 3}, 0).find("--master-port 3 without"), std::string::npos);
}

TEST(LaunchPlan, WaitsForTheNameOfThisMachine) {
  const TempDir dir;
  write_file(dir / "hosts", std::string("203.0.113.1\n") + kLateName + "\n");
  look_ups_until_it_is_there = 1;
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  const LaunchPlan plan = plan_launch({.hostfile = dir / "hosts"}, 0, nothing,
                                      std::chrono::steady_clock::now() + std::chrono::seconds(20));
  ASSERT_TRUE(plan.server);
  EXPECT_EQ(plan.server->first, 1);
  EXPECT_EQ(plan.server->world, 2);
}

TEST(LaunchPlan, TakesServersFromAHostFile) {
  const TempDir dir;
  write_file(dir / "hosts", "203.0.113.1 slots=3\n127.0.0.1 slots=2\n203.0.113.2 slots=1\n");
  const LaunchPlan plan = planned({.hostfile = dir / "hosts"}, 0);
  ASSERT_TRUE(plan.server);
  EXPECT_EQ(plan.server->first, 3);
  EXPECT_EQ(plan.server->count, 2);
  EXPECT_EQ(plan.server->world, 6);
  EXPECT_EQ(plan.server->address, "203.0.113.1");
  EXPECT_EQ(plan.server->port, 29500);
  EXPECT_EQ(planned({.server = 2, .hostfile = dir / "hosts"}, 0).server->first, 5);
  EXPECT_NE(complaint({.hostfile = dir / "hosts"}, 4)
                .find("hosts:2: gives \"127.0.0.1\" 2 ranks, the command line 4"),
            std::string::npos);
  EXPECT_NE(complaint({.servers = 2, .hostfile = dir / "hosts"}, 0).find("--nnodes 2 and the 3 hosts"),
            std::string::npos);
}

TEST(LaunchPlan, StartsDlcsRanks) {
  const Variables dlc = {{"RANK", "1"},
                         {"WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "m"},
                         {"MASTER_PORT", "23"},
                         {"LOCAL_WORLD_SIZE", "2"}};
  const LaunchConfig config{.task_type = "llmacc.megatron.GPT"};
  const LaunchPlan plan = planned(config, 0, dlc);
  ASSERT_TRUE(plan.server);
  EXPECT_EQ(plan.server->first, 2);
  EXPECT_EQ(plan.server->count, 2);
  EXPECT_EQ(plan.server->world, 4);
  EXPECT_EQ(plan.server->address, "m");
  EXPECT_EQ(plan.server->port, 23);
  const LaunchPlan three = planned(config, 3, dlc);  // --nproc replaces LOCAL_WORLD_SIZE
  ASSERT_TRUE(three.server);
  EXPECT_EQ(three.server->first, 3);
  EXPECT_EQ(three.server->count, 3);
  EXPECT_EQ(three.server->world, 6);
  LaunchConfig both = config;
  both.gpus = "0,1";
  EXPECT_NE(complaint(both, 3, dlc).find("--nproc 3 and --gpus 0,1"), std::string::npos);
  Variables rank = dlc;  // torchrun's variables on a DLC server
  rank["LOCAL_RANK"] = "1";
  EXPECT_TRUE(planned(config, 0, rank).rank);
  EXPECT_FALSE(planned({}, 0, dlc).server);  // without the task type the variables count ranks
}

}  // namespace
}  // namespace megalith::test
