// Runs every launch command of docs/distributed.md unchanged. Each must give the losses of a run with one
// rank.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/apps/pretrain/pretrain_ranks.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

/// The ```sh blocks of the page.
std::vector<std::string> blocks() {
  std::vector<std::string> found;
  bool inside = false;
  for (const std::string& line :
       split(read_file(concat(MEGALITH_SOURCE_DIR, "/docs/distributed.md")), '\n')) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
      if (inside) found.emplace_back();
    } else if (inside) {
      found.back() += line + '\n';
    }
  }
  return found;
}

class DistributedDocs : public PretrainRanks {
 protected:
  /// Runs the one block that contains `word`, with this machine as node0 and a free port instead of 29500,
  /// and compares its losses. `before`: shell commands to run first.
  void expect_one_rank_from(const std::string& word, const std::string& before = {}) const {
    const std::vector<std::string> all = blocks();
    const auto has_word = [&](const std::string& block) { return block.find(word) != std::string::npos; };
    ASSERT_EQ(std::count_if(all.begin(), all.end(), has_word), 1) << word;
    std::string script = *std::find_if(all.begin(), all.end(), has_word);
    script = test::replaced(script, "node0", "127.0.0.1");
    script = test::replaced(script, "29500", std::to_string(free_port()));
    write_file(dir_ / "script.sh", concat("set -eu\n", before, "\n", script, "wait\n"));
    const CommandResult result =
        run_command(concat("cd ", dir_.path().string(), " && export PATH=", MEGALITH_BINARY_DIR,
                           "/bin:$PATH TRAIN='", kModel, "' && timeout 100 bash script.sh"));
    EXPECT_EQ(result.code, 0) << script << result.err;
    // Cuts off what some launchers put before each rank's lines. Some also write the lines of all ranks to
    // one stream.
    std::string lines;
    for (const std::string& line : split(result.out + result.err, '\n'))
      if (const size_t at = std::min(line.find(" iteration "), line.find(" validation loss"));
          at != std::string::npos)
        lines += line.substr(at) + '\n';
    // Lines of one_rank() begin with "| iteration", where the time was removed.
    EXPECT_EQ(losses(lines), test::replaced(one_rank(), "\\| iteration", " iteration"))
        << script << result.out << result.err;
    EXPECT_NE((result.out + result.err).find("using world size: 2,"), std::string::npos) << result.err;
  }
  static bool has(const std::string& command) { return run_command(command).code == 0; }

  /// A shell function that replaces a launcher that is not installed. It starts two ranks with the launcher's
  /// variables; in `variables`, %r stands for the rank.
  static std::string stand_in(const std::string& name, const std::string& variables) {
    std::string function = name + "() {\n  shift 2\n";
    for (const char* rank : {"0", "1"})
      function += "  env " + test::replaced(variables, "%r", rank) + " \"$@\" &\n";
    return function + "  wait\n}\n";
  }
};

TEST_F(DistributedDocs, ThreadsGiveOneRanksLosses) {
  expect_one_rank_from("--nproc 2");
}
TEST_F(DistributedDocs, GpusGiveOneRanksLosses) {
  expect_one_rank_from("--log_dir");
  expect_one_rank_from("--restarts");
  EXPECT_EQ(losses(file("logs/workerlog.1")), losses(file("logs/workerlog.0")));
}
TEST_F(DistributedDocs, ACommandAServerGivesOneRanksLosses) {
  expect_one_rank_from("--nnodes");
}
TEST_F(DistributedDocs, AHostFileGivesOneRanksLosses) {
  expect_one_rank_from("--hostfile");
}
TEST_F(DistributedDocs, APlainEnvironmentGivesOneRanksLosses) {
  expect_one_rank_from("\nRANK=0 megalith-pretrain $TRAIN");
}
TEST_F(DistributedDocs, DlcsServersGiveOneRanksLosses) {
  expect_one_rank_from("--task-type");
}
TEST_F(DistributedDocs, ARankTableGivesOneRanksLosses) {
  write_file(dir_ / "table.json",
             R"({"server_list": [{"server_id": "127.0.0.1", "device": [{"device_id": "0", "rank_id": "0"},
                {"device_id": "1", "rank_id": "1"}]}], "status": "completed"})");
  expect_one_rank_from("RANK_TABLE_FILE", "export MASTER_PORT=" + std::to_string(free_port()));
}

TEST_F(DistributedDocs, MpirunGivesOneRanksLosses) {
  if (!has("command -v mpirun")) GTEST_SKIP() << "there is no mpirun (package openmpi-bin)";
  // Open MPI requires explicit permission to run as root and with more ranks than cores.
  expect_one_rank_from("mpirun",
                       "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                       "OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy="
                       ":oversubscribe MASTER_PORT=" +
                           std::to_string(free_port()));
}

// Slurm needs its daemons, so the test only sets the variables that srun sets in a step (Slurm 23.11,
// "srun(1)", OUTPUT ENVIRONMENT).
TEST_F(DistributedDocs, SrunsVariablesGiveOneRanksLosses) {
  expect_one_rank_from("srun", stand_in("srun",
                                        "SLURM_PROCID=%r SLURM_NTASKS=2 SLURM_LOCALID=%r SLURM_STEP_ID=0 "
                                        "SLURM_JOB_ID=77 SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 MASTER_PORT=" +
                                            std::to_string(free_port())));
}

TEST_F(DistributedDocs, TorchrunGivesOneRanksLosses) {
  if (!has("command -v torchrun")) GTEST_SKIP() << "there is no torchrun (tools/setup --peers has torch)";
  expect_one_rank_from("torchrun");
}
TEST_F(DistributedDocs, TorchsLaunchGivesOneRanksLosses) {
  if (!has("python -c 'import torch'")) GTEST_SKIP() << "there is no torch (tools/setup --peers has it)";
  expect_one_rank_from("torch.distributed.launch");
}
TEST_F(DistributedDocs, PaddlesLaunchGivesOneRanksLosses) {
  const std::string port = std::to_string(free_port());
  std::string before;
  if (!has("python -c 'import paddle'"))  // then a stand-in sets its variables
                                          // (paddle/distributed/launch/controllers)
    before =
        stand_in("launch", "PADDLE_TRAINER_ID=%r PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ENDPOINTS=127.0.0.1:" +
                               port + ",127.0.0.1:" + port) +
        "python() { shift 2; launch \"$@\"; }\n";
  expect_one_rank_from("paddle.distributed.launch", before);
}

}  // namespace
}  // namespace megalith::test
