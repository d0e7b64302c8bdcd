#include "libcore/launch/environment.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

using Variables = std::map<std::string, std::string>;

Environment of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

/// A rank table as Ascend's hccl_tools.py writes it, with two ranks on each server.
std::string rank_table(const std::vector<std::string>& servers, const std::string& status = "completed") {
  std::string list;
  int rank = 0;
  for (const std::string& server : servers) {
    list += (list.empty() ? "" : ",") + ("{\"server_id\": \"" + server) + "\", \"device\": [";
    for (int device = 0; device < 2; ++device, ++rank)
      list += std::string(device ? "," : "") + R"({"device_id": ")" + std::to_string(device) +
              R"(", "device_ip": "10.0.0.9", "rank_id": ")" + std::to_string(rank) + "\"}";
    list += "]}";
  }
  return R"({"version": "1.0", "server_count": ")" + std::to_string(servers.size()) +
         R"(", "server_list": [)" + list + R"(], "status": ")" + status + "\"}";
}

struct Case {
  const char* what;
  Variables variables;
  Launch launch;
};

const Case kServed[] = {
    {"torchrun",
     {{"RANK", "3"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "node7"},
      {"MASTER_PORT", "29400"},
      {"TORCHELASTIC_RUN_ID", "j1"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
     {.rank = 3,
      .world = 4,
      .local_rank = 1,
      .local_world = 2,
      .address = "node7",
      .port = 29400,
      .launcher = "torchrun",
      .job = "j1",
      .agent_store = true,
      .attempt = "2"}},
    {"plain, without local ranks",
     {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.1.2.3"}},
     {.rank = 1, .world = 2, .address = "10.1.2.3", .port = 29500, .launcher = "the environment"}},
    {"plain, all on one machine",
     {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_PORT", "7"}},
     {.rank = 1,
      .world = 2,
      .local_world = 2,
      .address = "127.0.0.1",
      .port = 7,
      .launcher = "the environment"}},
    {"Open MPI over machines",
     {{"OMPI_COMM_WORLD_RANK", "5"},
      {"OMPI_COMM_WORLD_SIZE", "8"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
      {"MASTER_ADDR", "a"},
      {"MEGALITH_JOB_TOKEN", "secret"}},
     {.rank = 5,
      .world = 8,
      .local_rank = 1,
      .local_world = 4,
      .address = "a",
      .port = 29500,
      .launcher = "mpirun",
      .token = "secret"}},
    {"Open MPI on one machine",
     {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
     {.world = 2, .local_world = 2, .address = "127.0.0.1", .port = 29500, .launcher = "mpirun"}},
    {"MPICH on one machine",
     {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
     {.rank = 1,
      .world = 2,
      .local_rank = 1,
      .local_world = 2,
      .address = "127.0.0.1",
      .port = 29500,
      .launcher = "mpirun"}},
    {"srun with the port given",
     {{"SLURM_PROCID", "2"},
      {"SLURM_NTASKS", "4"},
      {"SLURM_LOCALID", "0"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_JOB_ID", "4711"},
      {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"},
      {"MASTER_PORT", "1234"}},
     {.rank = 2,
      .world = 4,
      .local_rank = 0,
      .address = "10.0.0.1",
      .port = 1234,
      .launcher = "srun",
      .job = "4711"}},
    {"Paddle with a master",
     {{"PADDLE_TRAINER_ID", "1"}, {"PADDLE_TRAINERS_NUM", "2"}, {"PADDLE_MASTER", "10.0.0.5:6170"}},
     {.rank = 1, .world = 2, .address = "10.0.0.5", .port = 6170, .launcher = "Paddle's launcher"}},
    {"Paddle with endpoints",
     {{"PADDLE_TRAINER_ID", "1"},
      {"PADDLE_TRAINERS_NUM", "2"},
      {"PADDLE_RANK_IN_NODE", "1"},
      {"PADDLE_TRAINER_ENDPOINTS", "10.0.0.5:6170,10.0.0.5:6171"}},
     {.rank = 1,
      .world = 2,
      .local_rank = 1,
      .address = "10.0.0.5",
      .port = 6170,
      .launcher = "Paddle's launcher"}},
    {"Ascend without a table",
     {{"RANK_ID", "1"}, {"RANK_SIZE", "2"}, {"MASTER_ADDR", "h"}},
     {.rank = 1, .world = 2, .address = "h", .port = 29500, .launcher = "the rank table"}},
    {"one rank is a launch, too",
     {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
     {.address = "127.0.0.1", .port = 29500, .launcher = "the environment"}},
    {"torchrun within a step of Slurm",
     {{"RANK", "5"},
      {"WORLD_SIZE", "8"},
      {"MASTER_ADDR", "m"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_PROCID", "1"},
      {"SLURM_NTASKS", "2"}},
     {.rank = 5, .world = 8, .address = "m", .port = 29500, .launcher = "the environment"}},
    {"Open MPI before PMI before Slurm before Paddle before Ascend",
     {{"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"PMI_RANK", "0"},
      {"PMI_SIZE", "2"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_PROCID", "0"},
      {"SLURM_NTASKS", "2"},
      {"PADDLE_TRAINER_ID", "0"},
      {"PADDLE_TRAINERS_NUM", "2"},
      {"RANK_ID", "0"},
      {"RANK_SIZE", "2"},
      {"MASTER_ADDR", "m"}},
     {.rank = 1, .world = 2, .address = "m", .port = 29500, .launcher = "mpirun"}},
    {"Slurm before Paddle",
     {{"SLURM_STEP_ID", "0"},
      {"SLURM_PROCID", "1"},
      {"SLURM_NTASKS", "2"},
      {"PADDLE_TRAINER_ID", "0"},
      {"PADDLE_TRAINERS_NUM", "2"},
      {"MASTER_ADDR", "m"}},
     {.rank = 1, .world = 2, .address = "m", .port = 29500, .launcher = "srun"}},
};

TEST(ReadLaunch, ServesEveryLauncher) {
  for (const Case& c : kServed) {
    const auto launch = read_launch(of(c.variables));
    ASSERT_TRUE(launch) << c.what;
    EXPECT_EQ(launch->rank, c.launch.rank) << c.what;
    EXPECT_EQ(launch->world, c.launch.world) << c.what;
    EXPECT_EQ(launch->local_rank, c.launch.local_rank) << c.what;
    EXPECT_EQ(launch->local_world, c.launch.local_world) << c.what;
    EXPECT_EQ(launch->address, c.launch.address) << c.what;
    EXPECT_EQ(launch->port, c.launch.port) << c.what;
    EXPECT_EQ(launch->launcher, c.launch.launcher) << c.what;
    EXPECT_EQ(launch->token, c.launch.token) << c.what;
    EXPECT_EQ(launch->job, c.launch.job) << c.what;
    EXPECT_EQ(launch->agent_store, c.launch.agent_store) << c.what;
    EXPECT_EQ(launch->attempt, c.launch.attempt) << c.what;
  }
}

TEST(ReadLaunch, OverlooksOnlyWhatTellsOfNoLauncher) {
  EXPECT_FALSE(read_launch(of({})));
  // A batch script of Slurm runs only once, however many tasks its steps will have.
  EXPECT_FALSE(read_launch(of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}})));
  EXPECT_FALSE(read_launch(of({{"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "0"}})));
  // DLC sets only LOCAL_WORLD_SIZE for a command that starts ranks.
  EXPECT_FALSE(read_launch(of({{"LOCAL_WORLD_SIZE", "4"}})));
  EXPECT_FALSE(read_launch(of({{"PADDLE_TRAINER_ENDPOINTS", "a:1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})));
  // The only process of a run may have these variables. In a batch script, SLURM_NPROCS is the job's number
  // of processes.
  EXPECT_FALSE(read_launch(of({{"PADDLE_GLOBAL_SIZE", "1"}, {"PADDLE_LOCAL_RANK", "0"}})));
  EXPECT_FALSE(read_launch(of({{"SLURM_NPROCS", "4"}, {"SLURM_NODEID", "0"}, {"SLURM_JOB_ID", "1"}})));
}

TEST(ReadLaunch, RefusesWhatContradictsItselfOrIsNoNumber) {
  const Variables two = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}};
  const auto with = [](Variables base, const Variables& more) {
    for (const auto& [name, value] : more) base[name] = value;
    return base;
  };
  const struct {
    Variables variables;
    const char* part;
  } cases[] = {
      {{{"RANK", "0"}}, "RANK=0 is in the environment, but WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "8"}}, "WORLD_SIZE=8 is in the environment, but RANK is not"},
      {with(two, {{"RANK", "2"}}), "RANK=2 and WORLD_SIZE=2"},
      {with(two, {{"RANK", "-1"}}), "RANK=\"-1\""},
      {with(two, {{"RANK", "one"}}), "RANK=\"one\""},
      {with(two, {{"RANK", ""}}), "RANK=\"\""},
      {with(two, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=\"0\""},
      {with(two, {{"WORLD_SIZE", "99999999999999999999"}}), "WORLD_SIZE=\"99999999999999999999\""},
      {with(two, {{"LOCAL_RANK", "2"}}), "LOCAL_RANK=2 and WORLD_SIZE=2"},
      {with(two, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}}), "LOCAL_RANK=1 and LOCAL_WORLD_SIZE=1"},
      {with(two, {{"LOCAL_WORLD_SIZE", "3"}}), "LOCAL_WORLD_SIZE=3 and WORLD_SIZE=2"},
      {with(two, {{"LOCAL_RANK", "x"}}), "LOCAL_RANK=\"x\""},
      {with(two, {{"MASTER_PORT", "65536"}}), "MASTER_PORT=\"65536\""},
      {with(two, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}}),
       "WORLD_SIZE=2 and OMPI_COMM_WORLD_SIZE=4"},
      {with(two, {{"PMI_SIZE", "what"}, {"PMI_RANK", "1"}}), "PMI_SIZE=\"what\""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"PADDLE_TRAINERS_NUM", "2"}, {"PADDLE_TRAINER_ID", "1"}},
       "WORLD_SIZE=1 and PADDLE_TRAINERS_NUM=2"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "WORLD_SIZE=2 in the environment, but the host of rank 0"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       "set MASTER_ADDR"},
      {{{"OMPI_COMM_WORLD_SIZE", "4"}}, "OMPI_COMM_WORLD_RANK is not"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}}, "SLURM_PROCID is not"},
      {{{"PADDLE_TRAINERS_NUM", "2"}}, "PADDLE_TRAINER_ID is not"},
      {{{"PADDLE_TRAINERS_NUM", "2"}, {"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINER_ENDPOINTS", "a:1"}},
       "PADDLE_TRAINERS_NUM=2 and the 1 of PADDLE_TRAINER_ENDPOINTS"},
      {{{"PADDLE_TRAINERS_NUM", "2"}, {"PADDLE_TRAINER_ID", "0"}, {"PADDLE_MASTER", "nowhere"}},
       "PADDLE_MASTER=\"nowhere\""},
      {{{"RANK_SIZE", "2"}}, "RANK_ID is not"},
      {{{"LOCAL_RANK", "1"}}, "LOCAL_RANK=1 in the environment implies several ranks, but RANK is not set"},
      {{{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}, "OMPI_COMM_WORLD_LOCAL_RANK=1 in the environment implies"},
      {{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, "OMPI_COMM_WORLD_LOCAL_SIZE=2 in the environment implies"},
      {{{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:2"}}, "PADDLE_TRAINER_ENDPOINTS=\"a:1,b:2\" in the environment"},
      {{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, "but SLURM_STEP_ID is not set"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
       "SLURM_STEP_NUM_TASKS=2 in the environment implies several ranks, but SLURM_PROCID is not set"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_NPROCS", "2"}}, "SLURM_NPROCS=2 in the environment implies"},
      {{{"SLURM_NODEID", "1"}}, "SLURM_NODEID=1 in the environment implies"},
      {{{"OMPI_COMM_WORLD_NODE_RANK", "1"}}, "OMPI_COMM_WORLD_NODE_RANK=1 in the environment implies"},
      {{{"PADDLE_GLOBAL_SIZE", "2"}},
       "PADDLE_GLOBAL_SIZE=2 in the environment implies several ranks, but PADDLE_TRAINER_ID is not set"},
      {{{"PADDLE_GLOBAL_RANK", "1"}}, "PADDLE_GLOBAL_RANK=1 in the environment implies"},
      {{{"PADDLE_LOCAL_RANK", "1"}}, "PADDLE_LOCAL_RANK=1 in the environment implies"},
      {{{"PADDLE_NNODES", "2"}}, "PADDLE_NNODES=2 in the environment implies"},
      {{{"PADDLE_NNODES", "two"}}, "PADDLE_NNODES=\"two\" in the environment: wanted a number"},
      {{{"GROUP_RANK", "1"}}, "GROUP_RANK=1 in the environment implies"},
      {{{"ROLE_WORLD_SIZE", "2"}}, "ROLE_WORLD_SIZE=2 in the environment implies"},
      {{{"PMIX_RANK", "1"}}, "PMIX_RANK=1 in the environment implies"},
      {{{"MV2_COMM_WORLD_SIZE", "2"}}, "MV2_COMM_WORLD_SIZE=2 in the environment implies"},
      {{{"MS_WORKER_NUM", "2"}}, "MS_WORKER_NUM=2 in the environment implies"},
      {with(two, {{"TORCHELASTIC_RUN_ID", "j"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
       "without MASTER_ADDR and MASTER_PORT"},
  };
  for (const auto& c : cases) try {
      read_launch(of(c.variables));
      ADD_FAILURE() << c.part << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
      EXPECT_NE(std::string(error.what()).find(c.part), std::string::npos) << error.what() << "\n" << c.part;
    }
}

// A plan asks only for the number of ranks; this process need not be one of them.
TEST(ReadLaunchSizes, TakesTheFirstLaunchersWorld) {
  const auto sizes = [](const Variables& variables, bool servers = false) {
    const LaunchSizes told = read_launch_sizes(of(variables), servers);
    return std::pair(told.world, told.local_world);
  };
  EXPECT_EQ(sizes({}), std::pair(0, 0));
  EXPECT_EQ(sizes({{"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "4"}, {"RANK_SIZE", "9"}}), std::pair(16, 4));
  EXPECT_EQ(sizes({{"SLURM_NTASKS", "16"}}), std::pair(0, 0)) << "the batch script";
  EXPECT_EQ(sizes({{"SLURM_NTASKS", "16"}, {"SLURM_STEP_ID", "0"}}), std::pair(16, 0));
  EXPECT_EQ(sizes({{"PMI_SIZE", "6"}, {"MPI_LOCALNRANKS", "3"}}), std::pair(6, 3));
  EXPECT_EQ(sizes({{"WORLD_SIZE", "2"}}, true), std::pair(8, 4));
  EXPECT_EQ(sizes({{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "8"}}, true), std::pair(16, 8));
  EXPECT_EQ(sizes({{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, true), std::pair(2, 0)) << "torchrun";
  EXPECT_EQ(read_launch_sizes(of({{"WORLD_SIZE", "2"}}), true).world_source, "WORLD_SIZE=2 servers");
}

TEST(OneProcess, IsRefusedWhereALauncherStartedSeveral) {
  TempDir dir;
  write_file(dir / "table.json", rank_table({"10.0.0.1"}));
  const std::vector<std::pair<Variables, std::string>> several = {
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE=2"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"GROUP_WORLD_SIZE", "1"}}, "WORLD_SIZE=2"},
      {{{"OMPI_COMM_WORLD_SIZE", "4"}}, "OMPI_COMM_WORLD_SIZE=4"},
      {{{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}}, "PMI_SIZE=3"},
      {{{"MV2_COMM_WORLD_SIZE", "3"}}, "MV2_COMM_WORLD_SIZE=3"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "8"}}, "SLURM_NTASKS=8"},
      {{{"PADDLE_TRAINERS_NUM", "2"}}, "PADDLE_TRAINERS_NUM=2"},
      {{{"RANK_SIZE", "2"}}, "RANK_SIZE=2"},
      {{{"MS_WORKER_NUM", "2"}}, "MS_WORKER_NUM=2"},
      {{{"RANK_TABLE_FILE", dir / "table.json"}}, concat("RANK_TABLE_FILE=\"", dir / "table.json", '"')},
      // A launcher of one process around one of several, and all that must be unset.
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_SIZE=2"},
      {{{"WORLD_SIZE", "2"}, {"ROLE_WORLD_SIZE", "2"}}, "WORLD_SIZE=2, ROLE_WORLD_SIZE=2"}};
  for (const auto& [variables, named] : several) try {
      require_one_process(of(variables), "megalith-x");
      ADD_FAILURE() << named;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
      EXPECT_EQ(std::string(error.what()).find(named + " in the environment: megalith-x is one process"), 0U)
          << error.what();
    }
}

TEST(OneProcess, PassesAloneOrInABatchScript) {
  for (const Variables& variables : std::vector<Variables>{
           {},
           {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_WORLD_SIZE", "1"}, {"ROLE_WORLD_SIZE", "1"}},
           {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
           {{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_NUM_TASKS", "1"}},
           {{"SLURM_NTASKS", "8"}, {"SLURM_NPROCS", "8"}, {"SLURM_PROCID", "0"}},
           {{"LOCAL_WORLD_SIZE", "4"}, {"MASTER_ADDR", "m"}}})
    EXPECT_NO_THROW(require_one_process(of(variables), "megalith-x"));
}

TEST(ReadLaunch, TakesTheCommandLineBeforeTheEnvironment) {
  const Variables variables = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "1"}};
  const auto launch = read_launch(of(variables), {.address = "n", .port = 2, .local_rank = 1});
  EXPECT_EQ(launch->address, "n");
  EXPECT_EQ(launch->port, 2);
  EXPECT_EQ(launch->local_rank, 1);
  Variables other = variables;
  other["LOCAL_RANK"] = "0";
  EXPECT_THROW(read_launch(of(other), {.local_rank = 1}), Error);
}

TEST(ReadLaunch, MakesAPortFromTheJob) {
  Variables job = {{"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "2"},
                   {"SLURM_STEP_ID", "0"},
                   {"SLURM_JOB_ID", "17"},
                   {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}};
  const int first = read_launch(of(job))->port;
  job["SLURM_PROCID"] = "1";
  EXPECT_EQ(read_launch(of(job))->port, first);
  job["SLURM_JOB_ID"] = "18";
  EXPECT_NE(read_launch(of(job))->port, first);
  EXPECT_GE(first, 20000);
  EXPECT_LT(first, 30000);
}

TEST(ReadLaunch, ReadsARankTable) {
  const TempDir dir;
  write_file(dir / "table.json", rank_table({"10.0.0.1", "10.0.0.2"}));
  const Variables third = {{"RANK_ID", "3"}, {"RANK_TABLE_FILE", dir / "table.json"}};
  const auto launch = read_launch(of(third));
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->world, 4);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_world, 2);
  EXPECT_EQ(launch->address, "10.0.0.1");
  EXPECT_GE(launch->port, 20000);
  Variables other = third;
  other["RANK_SIZE"] = "8";
  EXPECT_THROW(read_launch(of(other)), Error);
  other = third;
  other.erase("RANK_ID");
  EXPECT_THROW(read_launch(of(other)), Error);
  other = third;
  other["RANK_TABLE_FILE"] = dir / "nothing";
  try {
    read_launch(of(other));
    ADD_FAILURE() << "a table that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
  }
}

TEST(ReadServerLaunch, CountsServersAsDlcDoes) {
  const Variables dlc = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "23"}};
  const auto launch = read_server_launch(of(dlc));
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->server, 1);
  EXPECT_EQ(launch->servers, 2);
  EXPECT_EQ(launch->local_world, 4);
  EXPECT_EQ(launch->address, "m");
  EXPECT_EQ(launch->port, 23);
  Variables eight = dlc;
  eight["LOCAL_WORLD_SIZE"] = "8";
  EXPECT_EQ(read_server_launch(of(eight))->local_world, 8);
  Variables rank = dlc;
  rank["LOCAL_RANK"] = "0";
  EXPECT_FALSE(read_server_launch(of(rank)));
  rank = dlc;
  rank["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_FALSE(read_server_launch(of(rank)));
  EXPECT_FALSE(read_server_launch(of({})));
  EXPECT_THROW(read_server_launch(of({{"RANK", "2"}, {"WORLD_SIZE", "2"}})), Error);
}

TEST(AnotherSpeaks, ForEveryRankButTheFirst) {
  EXPECT_FALSE(another_speaks(of({})));
  EXPECT_FALSE(another_speaks(of({{"RANK", "0"}, {"WORLD_SIZE", "2"}})));
  EXPECT_TRUE(another_speaks(of({{"RANK", "1"}, {"WORLD_SIZE", "2"}})));
  EXPECT_TRUE(another_speaks(of({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}})));
  EXPECT_TRUE(another_speaks(of({{"RANK_ID", "1"}, {"RANK_TABLE_FILE", "none"}})));
  // Not in a Slurm step: this process reports the error itself.
  EXPECT_FALSE(another_speaks(of({{"SLURM_PROCID", "1"}})));
  EXPECT_FALSE(another_speaks(of({{"RANK", "one"}})));
  EXPECT_TRUE(another_speaks(of({{"RANK", "0"}, {"MEGALITH_STARTED_RANK", "1"}})));
}

// A job's name is no secret, so it never replaces the token.
TEST(JobToken, IsOursAlone) {
  Variables all = {{"SLURM_JOB_ID", "s"}};
  EXPECT_EQ(job_token(of(all)), "");
  EXPECT_EQ(job_name(of(all)), "s");
  all["TORCHELASTIC_RUN_ID"] = "t";
  EXPECT_EQ(job_token(of(all)), "");
  EXPECT_EQ(job_name(of(all)), "t");
  all["MEGALITH_JOB_TOKEN"] = "m";
  EXPECT_EQ(job_token(of(all)), "m");
  EXPECT_EQ(job_token(of({})), "");
  EXPECT_EQ(job_name(of({})), "");
}

TEST(ReadLaunch, ShowsNoControlCharacterAndNoEndlessValue) {
  const std::string nasty = "\x1b[2J" + std::string(1 << 16, 'x');
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT", "LOCAL_RANK", "PADDLE_MASTER"}) {
    Variables all = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}};
    if (std::string(name) == "PADDLE_MASTER")
      all = {{"PADDLE_TRAINER_ID", "0"}, {"PADDLE_TRAINERS_NUM", "2"}};
    all[name] = nasty;
    try {
      (void)read_launch(of(all));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("\\x1b[2Jxxx"), std::string::npos) << what;
      EXPECT_EQ(what.find('\x1b'), std::string::npos) << what;
      EXPECT_LT(what.size(), 1000U);
    }
  }
}

}  // namespace
}  // namespace megalith::test
