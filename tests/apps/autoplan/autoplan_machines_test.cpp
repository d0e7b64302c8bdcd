// The devices and machines that megalith-autoplan plans for, and where their number and abilities come from.
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/apps/autoplan/commands.h"
#include "tests/support/files.h"
#include "tests/support/models.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::k22b;
using test::kHere;
using test::run_command;

TEST(Autoplan, TakesTheDevicesMemoryFromTheEnvironment) {
  const CommandResult result = run_command("DEVICE_MEMORY_GB=2 " + app("autoplan") + k22b);
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("nothing fits"), std::string::npos) << result.err;
  const CommandResult wrong = run_command("DEVICE_MEMORY_GB=much " + app("autoplan") + k22b);
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("DEVICE_MEMORY_GB is \"much\""), std::string::npos) << wrong.err;
  for (const char* none : {"nan", "inf", "-inf"})
    EXPECT_EQ(run_command(concat("DEVICE_MEMORY_GB=", none, ' ') + app("autoplan") + k22b).code, 64) << none;
}

// Four hundred narrow layers start many kernels, so that their graphs would take 3.5 GB: with them the plan
// takes 30.16 GB.
TEST(Autoplan, StartsARunWithoutGraphsWhereOnlyTheirMemoryIsMissing) {
  const std::string command =
      app("autoplan") +
      " --num-layers 400 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --vocab-size 50257 "
      "--max-position-embeddings 512 --gpu rtx4090-24gb --world-size 1 --global-batch-size 16 "
      "--micro-batch-size 1 --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 "
      "--recompute-granularity none --device-memory-gb ";
  const CommandResult enough = run_command(command + "31"), little = run_command(command + "29.5"),
                      json = run_command(command + "29.5 --json");
  ASSERT_EQ(enough.code, 0) << enough.err;
  EXPECT_EQ(enough.out.find("cuda-graph-impl"), std::string::npos) << enough.out;
  ASSERT_EQ(little.code, 0) << little.err;
  EXPECT_NE(little.out.find("on its fullest rank, with --cuda-graph-impl none\n"), std::string::npos)
      << little.out;
  EXPECT_NE(little.out.find("  megalith-pretrain --device cuda "), std::string::npos) << little.out;
  EXPECT_NE(little.out.find(" --cuda-graph-impl none --tensor-model-parallel-size 1"), std::string::npos)
      << little.out;
  const std::string line = Json::parse(json.out, "stdout")["launch"]["megalith"]["srun"].as_string();
  EXPECT_NE(line.find(" --cuda-graph-impl none "), std::string::npos) << line;
}

TEST(Autoplan, PlansForThisMachine) {
  const CommandResult result =
      run_command(app("autoplan") +
                  " --gpu local --global-batch-size 16 --num-layers 2 --hidden-size 64 "
                  "--num-attention-heads 4 --seq-length 64 --vocab-size 512");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("this machine's processor"), std::string::npos) << result.out;
}

// Without --gpu, each device of a plan is a rank on this machine, so all ranks share its memory.
TEST(Autoplan, RanksOfThisMachineShareItsMemory) {
  const auto memory = [](const std::string& more) {
    const CommandResult result = run_command(app("autoplan") + kHere + " --json" + more);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["device_memory_bytes"].as_double();
  };
  const auto whole =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  EXPECT_LE(memory(" --world-size 16"), whole / 16);
  EXPECT_EQ(memory(" --world-size 16 --device-memory-gb 2"), 2e9);
}

TEST(Autoplan, TakesTheLaunchersSizes) {
  const std::string model =
      " --max-global-batch-size 16 --num-layers 48 --num-attention-heads 64 --hidden-size 6144 --seq-length "
      "2048 "
      "--vocab-size 50257 --json --top 1";
  const CommandResult result = run_command("WORLD_SIZE=16 LOCAL_WORLD_SIZE=4 " + app("autoplan") + model);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out, "answer")["devices"].as_int(), 16);
  const std::pair<const char*, int> kLaunchers[] = {
      {"OMPI_COMM_WORLD_SIZE=16 OMPI_COMM_WORLD_LOCAL_SIZE=4", 16},
      {"SLURM_STEP_ID=0 SLURM_NTASKS=16", 16},
      {"PADDLE_TRAINERS_NUM=8", 8},
      {"RANK_SIZE=16", 16}};
  for (const auto& [variables, devices] : kLaunchers) {
    const CommandResult found = run_command(std::string(variables) + ' ' + app("autoplan") + model);
    ASSERT_EQ(found.code, 0) << variables << found.err;
    EXPECT_EQ(Json::parse(found.out, "answer")["devices"].as_int(), devices) << variables;
  }
  const CommandResult servers = run_command("WORLD_SIZE=2 LOCAL_WORLD_SIZE=8 " + app("autoplan") + model +
                                            " --task-type llmacc.megatron.GPT");
  ASSERT_EQ(servers.code, 0) << servers.err;
  EXPECT_EQ(Json::parse(servers.out, "answer")["devices"].as_int(), 16) << "docs/from-dlc.md";
  EXPECT_EQ(servers.err.find("ignored"), std::string::npos) << servers.err;
  const std::pair<const char*, const char*> kWrong[] = {
      {"WORLD_SIZE=many", "WORLD_SIZE=\"many\" in the environment: wanted a number"},
      {"WORLD_SIZE=2 LOCAL_WORLD_SIZE=8", "WORLD_SIZE=2 is not a multiple of LOCAL_WORLD_SIZE=8"},
      {"WORLD_SIZE=8 OMPI_COMM_WORLD_SIZE=x LOCAL_WORLD_SIZE=3", "WORLD_SIZE=8 is not a multiple of"}};
  for (const auto& [variables, says] : kWrong) {
    const CommandResult wrong = run_command(std::string(variables) + ' ' + app("autoplan") + model);
    EXPECT_EQ(wrong.code, 64) << variables;
    EXPECT_NE(wrong.err.find(says), std::string::npos) << wrong.err;
  }
}

// The NVLink domain of GB200s joins 72 devices, 4 from each host.
TEST(Autoplan, PricesLinksThatJoinMachines) {
  const auto exchange = [](const std::string& more) {
    const CommandResult result = run_command(
        app("autoplan") +
        " --gpu GB200-186GB --world-size 64 --global-batch-size 64 --num-layers 24 --hidden-size 8192 "
        "--num-attention-heads 64 --seq-length 4096 --vocab-size 50257 "
        "--tensor-model-parallel-size 16 --pipeline-model-parallel-size 1 --micro-batch-size 1 "
        "--context-parallel-size 1 --sequence-parallel --recompute-granularity full "
        "--recompute-method uniform --recompute-num-layers 1 --json --top 1" +
        more);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["plans"]
        .as_array()
        .front()["time_seconds"]["tensor comm"]
        .as_double();
  };
  const double hosts = exchange(" --local-world-size 4"), rack = exchange(" --local-world-size 64");
  EXPECT_EQ(hosts, rack);
  EXPECT_GT(exchange(" --local-world-size 4 --link-domain 4"), 4 * rack);
  const test::TempDir folder;
  write_file(folder / "cluster.yaml", "local-world-size: 4\nlink-domain: 4\n");
  EXPECT_GT(exchange(" --cluster " + folder / "cluster.yaml"), 4 * rack);
  EXPECT_EQ(exchange(" --link-domain 72 --cluster " + folder / "cluster.yaml"), rack);
}

// An NVLink domain holds 72 GB200s or 8 H100s. Of 128 or 12 devices, a machine gets the largest divisor that
// does not exceed the size of the domain.
TEST(Autoplan, DividesAnyNumberOfDevicesIntoMachines) {
  const std::string model =
      " --global-batch-size 384 --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length "
      "2048 "
      "--vocab-size 50257";
  const CommandResult rack = run_command(app("autoplan") + " --gpu GB200-186GB --world-size 128" + model);
  ASSERT_EQ(rack.code, 0) << rack.err;
  EXPECT_NE(rack.out.find("each, 64 a machine, 72 joined by links)"), std::string::npos) << rack.out;
  const CommandResult dozen = run_command(app("autoplan") + " --gpu h100 --world-size 12" + model);
  ASSERT_EQ(dozen.code, 0) << dozen.err;
  EXPECT_NE(dozen.out.find("each, 6 joined by links)"), std::string::npos) << dozen.out;
  const CommandResult given =
      run_command(app("autoplan") + " --gpu h100 --world-size 12 --local-world-size 8" + model);
  EXPECT_EQ(given.code, 64);
  EXPECT_NE(given.err.find("--world-size 12 is not a multiple of --local-world-size 8"), std::string::npos);
}

// According to their data sheets, tensor cores multiply bf16 since Ampere, 8-bit types since Ada and Hopper,
// and types with scale blocks (mxfp8, nvfp4) since Blackwell.
TEST(Autoplan, RefusesFormatsThatADeviceHasNot) {
  const auto plan = [](const std::string& device) {
    return run_command(app("autoplan") +
                       " --world-size 8 --global-batch-size 64 --num-layers 8 --hidden-size 2048 "
                       "--num-attention-heads 16 --seq-length 2048 --vocab-size 50257 --gpu " +
                       device);
  };
  const std::pair<const char*, const char*> refused[] = {
      {"a100-80 --fp8-format hybrid", "--fp8-format hybrid: A100-SXM-80GB has no products in 8 bits"},
      {"h100 --fp4-format e2m1", "--fp4-format e2m1: H100-SXM-80GB has no products in 4 bits"},
      {"h100 --fp8-format e4m3 --fp8-recipe mxfp8", "--fp8-recipe mxfp8: H100-SXM-80GB has no products"},
      {"V100-SXM2-32GB --bf16", "--bf16: V100-SXM2-32GB has no products in bf16; give --fp16"},
      {"910b --fp8-format e4m3", "--fp8-format e4m3: Ascend910B-64GB has no products in 8 bits"},
      {"local --fp8-format e4m3", "--fp8-format e4m3: this machine's processor has no products in 8 bits"}};
  for (const auto& [device, message] : refused) {
    const CommandResult result = plan(device);
    EXPECT_EQ(result.code, 64) << device;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("B200-180GB"), std::string::npos) << result.err;
  }
  for (const char* const device : {"h100 --fp8-format hybrid", "b200 --fp8-format e4m3 --fp8-recipe mxfp8",
                                   "b200 --fp4-format e2m1", "a100-80 --bf16", "V100-SXM2-32GB --fp16"})
    EXPECT_EQ(plan(device).code, 0) << device;
  const CommandResult half = plan("V100-SXM2-32GB");
  EXPECT_NE(half.out.find(" --fp16"), std::string::npos) << half.out;
  EXPECT_EQ(half.out.find("bf16"), std::string::npos) << half.out;
}

TEST(Autoplan, TakesAClusterAndAModelFromFiles) {
  const test::TempDir folder;
  write_file(folder / "cluster.yaml", "gpu: h100\nworld-size: 32\nlocal-world-size: 8\nnetwork-gbps: 200\n");
  write_file(folder / "config.json", test::kLlama8BConfig);
  const CommandResult result =
      run_command(app("autoplan") + " --cluster " + (folder / "cluster.yaml") + " --hf " +
                  (folder / "config.json") + " --global-batch-size 128 --json --top 1");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_EQ(answer["parameters"].as_double(), 8030261248.0);
  EXPECT_EQ(answer["device"].as_string(), "H100-SXM-80GB");
  EXPECT_EQ(answer["devices"].as_int(), 32);
  write_file(folder / "cluster.yaml", "gpu: h100\nworld-size: 16.7\n");
  const CommandResult part = run_command(app("autoplan") + k22b + " --cluster " + (folder / "cluster.yaml"));
  EXPECT_EQ(part.code, 65);
  EXPECT_NE(part.err.find("world-size is \"16.7\", wanted a number of devices"), std::string::npos)
      << part.err;
  write_file(folder / "cluster.yaml", "gpus: 3\n");
  const CommandResult wrong = run_command(app("autoplan") + k22b + " --cluster " + (folder / "cluster.yaml"));
  EXPECT_EQ(wrong.code, 65);
  EXPECT_NE(wrong.err.find("\"gpus\" does not describe a cluster"), std::string::npos) << wrong.err;
}

// 22 billion parameters do not fit one device, but the question is how many there should be.
TEST(Autoplan, PlansWholeMachinesWhereTheirNumberIsTheQuestion) {
  const std::string model =
      app("autoplan") +
      " --max-global-batch-size 16 --num-layers 48 --num-attention-heads 64 --hidden-size 6144 "
      "--seq-length 2048 --vocab-size 50257 ";
  const auto run = [&](const std::string& options) {
    const CommandResult result = run_command(model + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    return result.out;
  };
  const auto scaling = [&](const std::string& options) {
    return Json::parse(run(options + " --train-tokens 1e11 --json"), "plan")["scaling"].dump();
  };
  EXPECT_EQ(scaling(""), scaling("--world-size 64 --local-world-size 8"));
  EXPECT_EQ(scaling("--local-world-size 8"), scaling("--world-size 8"));
  EXPECT_EQ(run("--simulate 64 --tensor-model-parallel-size 8"),
            run("--simulate 64 --tensor-model-parallel-size 8 --local-world-size 8"));
}

}  // namespace
}  // namespace megalith
