#include <gtest/gtest.h>

#include "libcore/json/json.h"
#include "tests/apps/finetune/finetune_app.h"
#include "tests/support/files.h"
#include "tests/support/models.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

/// The first line that holds `begin`, from there on; empty: there is none.
std::string line_with(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  return at == text.npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

class AutoplanTuning : public test::FinetuneApp {
 protected:
  AutoplanTuning() { write_file(dir_ / "config.json", test::kLlama8BConfig); }
  CommandResult plan(const std::string& options) const {
    return run_command(app("autoplan") + " --hf " + (dir_ / "config.json") +
                       " --seq-length 2048 --global-batch-size 16 " + options);
  }
};

// docs/planner.md: LoRA of 8B on one 4090, whose memory the whole model's training state exceeds five times.
TEST_F(AutoplanTuning, PlansAnAdapterWhereTheWholeModelDoesNotFit) {
  const CommandResult whole = plan("--gpu rtx4090-24gb --world-size 1 --finetuning-type full");
  EXPECT_EQ(whole.code, 64) << whole.out;
  const CommandResult text = plan("--gpu rtx4090-24gb --world-size 1 --lora-rank 8");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* word : {"8.030 billion parameters", "LoRA of rank 8 (20.972 million trained), megalith\n",
                           "megalith-finetune runs plan 1", "--lora --lora-rank 8 ", "--max-length 2048 "})
    EXPECT_NE(text.out.find(word), std::string::npos) << word << '\n' << text.out;
  EXPECT_EQ(text.out.find("pretrain"), std::string::npos) << text.out;
  const CommandResult narrow = plan("--gpu rtx4090-24gb --world-size 1 --lora-rank 8 --qlora --json");
  ASSERT_EQ(narrow.code, 0) << narrow.err;
  const Json answer = Json::parse(narrow.out, "answer");
  EXPECT_EQ(answer["tuning"]["trained_parameters"].as_double(), 20'971'520);
  EXPECT_TRUE(answer["tuning"]["eight_bits"].as_bool());
  EXPECT_LT(answer["plans"].as_array().at(0)["memory_bytes"]["parameters"].as_double(), 9.3e9);
}

// The table of what this version trains (train/devices/trained_where.h) has no weights of 8 bits on GPUs.
TEST_F(AutoplanTuning, SaysWhatThisVersionDoesNotTrainThere) {
  const CommandResult text = plan("--gpu rtx4090-24gb --world-size 1 --lora-rank 8 --qlora");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("no line is written for plan 1: this version does not train on "),
            std::string::npos)
      << text.out;
  EXPECT_EQ(text.out.find("torchrun"), std::string::npos) << text.out;
  const CommandResult job = plan("--gpu rtx4090-24gb --world-size 1 --lora-rank 8 --qlora --emit slurm");
  EXPECT_EQ(job.code, 64) << job.out;
  EXPECT_NE(job.err.find("--emit writes a job of megalith-finetune, which does not run plan 1"),
            std::string::npos)
      << job.err;
}

TEST_F(AutoplanTuning, WritesAJob) {
  const CommandResult job = plan("--gpu h100 --world-size 8 --lora-rank 16 --emit slurm --lr 0.001");
  ASSERT_EQ(job.code, 0) << job.err;
  EXPECT_NE(job.out.find("--job-name=megalith-finetune\n"), std::string::npos) << job.out;
  EXPECT_NE(
      job.out.find("megalith-finetune --device cuda --model FILL_IN --data FILL_IN --output-dir FILL_IN "
                   "--max-length 2048 --lora --lora-rank 16 --lr 0.001 "),
      std::string::npos)
      << job.out;
  EXPECT_NE(job.err.find("fill in before you submit the job: --time, --model, --data, --output-dir"),
            std::string::npos)
      << job.err;
}

// What megalith-finetune refuses, and the data of pretraining, are not in its line.
TEST_F(AutoplanTuning, RepeatsTheOptionsThatTuningHas) {
  const CommandResult text = plan(
      "--gpu h100 --world-size 1 --lora-rank 8 --lr 0.001 --train-samples 320 --sample-prompt once "
      "--data-path indexed --load older --save newer --save-interval 100 --tokenizer-model vocabulary");
  ASSERT_EQ(text.code, 0) << text.err;
  const std::string line = line_with(text.out, "megalith-finetune --device cuda ");
  for (const char* kept : {"--data FILL_IN ", " --lr 0.001 ", " --save newer ", " --save-interval 100 ",
                           " --tokenizer-model vocabulary "})
    EXPECT_NE(line.find(kept), std::string::npos) << kept << '\n' << line;
  for (const char* left : {"--train-samples", "--sample-prompt", "--data-path", "--load", "--output-dir"})
    EXPECT_EQ(line.find(left), std::string::npos) << left << '\n' << line;
}

// The line for this machine is run, with the gaps filled in.
TEST_F(AutoplanTuning, GivesALineThatRuns) {
  for (const std::string options : {"--lora-rank 4", "--lora-rank 4 --qlora", "--finetuning-type full"}) {
    const CommandResult plan =
        run_command(concat("cd ", dir_.path().string(), " && ", app("autoplan"),
                           " --gpu local --device-memory-gb 2 --model-name-or-path model --seq-length 16 "
                           "--global-batch-size 4 --lr 0.01 --save-interval 1 --sample-prompt once ",
                           options));
    ASSERT_EQ(plan.code, 0) << plan.err;
    std::string line = line_with(plan.out, "megalith-finetune --model model ");
    ASSERT_FALSE(line.empty()) << plan.out;
    line = test::replaced(line, "--data FILL_IN", "--data data");
    line = test::replaced(line, "--output-dir FILL_IN", "--output-dir out --overwrite-output-dir");
    const CommandResult run =
        run_command(concat("cd ", dir_.path().string(), " && PATH=", MEGALITH_BINARY_DIR,
                           "/bin:$PATH OMP_WAIT_POLICY=passive ", line, " --train-iters 2 --log-interval 1"));
    EXPECT_EQ(run.code, 0) << line << run.all();
    EXPECT_NE(run.all().find("iteration        2/       2"), std::string::npos) << run.all();
  }
}

TEST_F(AutoplanTuning, RefusesWhatIsNotPlanned) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"--lora-rank 8 --software megatron",
       "--software megatron trains no LoRA adapters; give one of nemo, "},
      {"--lora-rank 8 --finetuning-type full", "contradict each other"},
      {"--qlora", "--qlora needs --lora-rank or --finetuning-type lora"},
      {"--lora-rank 8 --qlora --fp8-format hybrid --gpu h100",
       "--qlora widens the weights for products in 16"},
      {"--lora-rank 8 --simulate 8", "--simulate is for the training of new models; leave out --lora-rank"},
      {"--lora-rank 8 --num-experts 8", "adapters are planned for dense models, not with "},
      {"--lora-rank 0", "--lora-rank 0"}};
  for (const auto& [options, says] : kRefused) {
    const CommandResult refused = plan(std::string("--world-size 8 ") + options);
    EXPECT_EQ(refused.code, 64) << options << refused.out;
    EXPECT_NE(refused.err.find(says), std::string::npos) << options << '\n' << refused.err;
  }
}

}  // namespace
}  // namespace megalith
