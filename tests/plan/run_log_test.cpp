#include "libcore/plan/run_log.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/file.h"
#include "tests/plan/problems.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::gpt_22b;

// Lines in the form that Megatron-LM 0.12 prints.
std::string megatron_log(const std::string& milliseconds) {
  std::string text =
      "------------------------ arguments ------------------------\n"
      "  global_batch_size ............................... 16\n"
      "  hidden_size ..................................... 6144\n"
      "  micro_batch_size ................................ 1\n"
      "  num_attention_heads ............................. 64\n"
      "  num_layers ...................................... 48\n"
      "  pipeline_model_parallel_size .................... 2\n"
      "  sequence_parallel ............................... True\n"
      "  tensor_model_parallel_size ...................... 4\n"
      "  use_distributed_optimizer ....................... False\n"
      "  world_size ...................................... 8\n"
      "[Rank 0] (after 1 iterations) memory (MB) | allocated: 40000.0 | max allocated: 60000.5 | reserved: "
      "62000.0 | "
      "max reserved: 63000.0\n";
  for (int i = 1; i <= 10; ++i)
    text += " [2026-01-01 00:00:00] iteration " + std::to_string(i) +
            "/ 100 | consumed samples: 16 | elapsed time per "
            "iteration (ms): " +
            (i == 1 ? "90000.0" : milliseconds) + " | learning rate: 1.0E-04 |\n";
  return text;
}

TEST(MegatronLog, ReadsTheCutTheTimeAndTheMemory) {
  const test::TempDir folder;
  const std::string path = folder / "run.log";
  write_file(path, megatron_log("2500.0"));
  const MegatronLog log = read_run_log(path);
  EXPECT_DOUBLE_EQ(log.seconds, 2.5);
  EXPECT_DOUBLE_EQ(*log.allocated, 60000.5 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(*log.reserved, 63000.0 * 1024 * 1024);
  const LoggedRun run = logged_run(log, gpt_22b(64), path);
  EXPECT_EQ(run.problem.machine.world, 8);
  EXPECT_EQ(run.candidate.tensor, 4);
  EXPECT_EQ(run.candidate.pipeline, 2);
  EXPECT_EQ(run.candidate.data, 1);
  EXPECT_TRUE(run.candidate.sequence);
  const std::string text = verify_text(log, run);
  EXPECT_NE(text.find("measured 2.500 s"), std::string::npos) << text;
  EXPECT_NE(text.find("most reserved: predicted"), std::string::npos) << text;
}

TEST(MegatronLog, ReadsExperts) {
  const test::TempDir folder;
  const std::string path = folder / "run.log";
  std::string text = megatron_log("2500.0");
  text.insert(text.find("  world_size"),
              "  expert_model_parallel_size ...................... 4\n"
              "  expert_tensor_parallel_size ..................... 1\n"
              "  moe_ffn_hidden_size ............................. 2048\n"
              "  moe_layer_freq .................................. [0, 0, 1, 1]\n"
              "  moe_router_topk ................................. 4\n"
              "  moe_shared_expert_intermediate_size ............. None\n"
              "  num_experts ..................................... 16\n");
  text.replace(text.find("48\n"), 2, "4");
  write_file(path, text);
  const LoggedRun run = logged_run(read_run_log(path), gpt_22b(64), path);
  EXPECT_EQ(run.problem.model.expert_count(), 16);
  EXPECT_EQ(run.problem.model.router_topk, 4);
  EXPECT_EQ(run.problem.model.expert_ffn, 2048);
  EXPECT_EQ(run.problem.model.shared_ffn, 0);
  EXPECT_EQ(run.problem.model.plain_layers(4), 2);
  EXPECT_EQ(run.candidate.expert, 4);
  EXPECT_EQ(run.candidate.expert_tensor, 1);
}

TEST(MegatronLog, AnAnchoredModelPredictsTheRunAsItWas) {
  const test::TempDir folder;
  const std::string path = folder / "run.log";
  write_file(path, megatron_log("2500.0"));
  const LoggedRun plain = logged_run(read_run_log(path), gpt_22b(64), path);
  const double predicted = make_plan(plain.problem, plain.candidate).time.total();
  write_file(path, megatron_log(std::to_string(1.2e3 * predicted)));
  const MegatronLog log = read_run_log(path);
  LoggedRun run = logged_run(log, gpt_22b(64), path);
  const Coefficients k = anchored(log, run);
  run.problem.coefficients = &k;
  EXPECT_NEAR(make_plan(run.problem, run.candidate).time.total() / log.seconds, 1, 1e-6);
  write_file(path, megatron_log(std::to_string(50e3 * predicted)));
  EXPECT_THROW(anchored(read_run_log(path), plain), Error);
}

TEST(MegatronLog, RefusesWhatIsNoLog) {
  const test::TempDir folder;
  write_file(folder / "other.txt", "nothing here\n");
  EXPECT_THROW(read_run_log(folder / "other.txt"), Error);
}

}  // namespace
}  // namespace megalith
