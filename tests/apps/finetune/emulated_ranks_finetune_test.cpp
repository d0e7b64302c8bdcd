// Fine-tuning by two ranks with an emulated GPU each, over the fake of NCCL, beside one rank on the CPU.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/parallel/processes/gloo_comm.h"
#include "tests/apps/finetune/finetune_app.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"

namespace megalith::test {
namespace {

class EmulatedRanksFinetune : public FinetuneApp {
 protected:
  void SetUp() override {
    if (!has_process_comm()) GTEST_SKIP() << "built without Gloo (package libgloo-dev)";
  }
  /// Six steps of the same batches.
  void expect_same_losses(const std::string& method) const {
    SCOPED_TRACE(method);
    const std::string steps =
        method + " --max-steps 6 --lr 0.001 --log-json log.jsonl --distributed-timeout-minutes 1 ";
    const auto tune_by = [&](const std::string& ranks) {
      for (const char* old : {"out", "log.jsonl"}) std::filesystem::remove_all(dir_ / old);
      const CommandResult result = tune(steps + ranks);
      ASSERT_EQ(result.code, 0) << result.all();
    };
    tune_by("--per-device-train-batch-size 2");
    const std::vector<double> wanted = losses("log.jsonl");
    ASSERT_EQ(wanted.size(), 6U);
    tune_by("--per-device-train-batch-size 1 --device cuda --nproc 2");
    expect_losses("log.jsonl", wanted);
    tune_by("--per-device-train-batch-size 1 --device cuda --log-dir logs --gpus 0,1");
    expect_losses("log.jsonl", wanted);
  }
  const EmulatedPlugin plugin_;
  const Variable devices_{"MEGALITH_EMULATOR_DEVICES", "2"};
};

TEST_F(EmulatedRanksFinetune, TunesWeightsAndAdaptersAsOneRankDoes) {
  for (const char* method : {"", "--lora", "--prefix-tuning --num-prefix-tokens 5"})
    expect_same_losses(method);
}

// The frozen parameters are on each rank; only the adapters and their state are divided and gathered.
TEST_F(EmulatedRanksFinetune, DividesTheStateOfAdapters) {
  for (const char* method : {"--lora --use-distributed-optimizer", "--lora --sharding stage2"})
    expect_same_losses(method);
}

TEST_F(EmulatedRanksFinetune, PrefersAnswersAsOneRankDoes) {
  write_pairs();
  expect_same_losses("--dpo --lora");
}

// The first rank answers, as among ranks on the CPU.
TEST_F(EmulatedRanksFinetune, AnswersAsRanksOnTheCpuDo) {
  const std::string answers =
      "--lora --lora-rank 4 --lr 0.02 --max-steps 6 --do-generation --max-new-tokens 3 "
      "--distributed-timeout-minutes 1 ";
  const CommandResult cpus = tune(answers + "--nproc 2 --per-device-train-batch-size 1", "cpus");
  ASSERT_EQ(cpus.code, 0) << cpus.all();
  const std::string wanted = read_file(dir_ / "cpus/generated_predictions.jsonl");
  EXPECT_FALSE(wanted.empty());
  for (const std::string ranks : {"--nproc 2", "--log-dir logs --gpus 0,1"}) {
    std::filesystem::remove_all(dir_ / "gpus");
    const CommandResult gpus =
        tune(answers + ranks + " --device cuda --per-device-train-batch-size 1", "gpus");
    ASSERT_EQ(gpus.code, 0) << gpus.all();
    EXPECT_EQ(read_file(dir_ / "gpus/generated_predictions.jsonl"), wanted) << ranks;
  }
}

}  // namespace
}  // namespace megalith::test
