// Tests planning inside megalith-pretrain (--max-global-batch-size; command S000): the program plans and then
// trains, or only plans.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::PretrainApp;
using test::run_command;

constexpr const char* kGpt22b =
    "--task-type llmacc.megatron.GPT --world-size 64 --local-world-size 8 --num-layers 48 "
    "--num-attention-heads 64 "
    "--hidden-size 6144 --seq-length 2048 --max-position-embeddings 2048 --train-iters 100 --lr 2.0e-4 "
    "--min-lr 2.0e-4 --vocab-file /mnt/data/gpt2-vocab.json --merge-file /mnt/data/gpt2-merges.txt "
    "--data-path /mnt/data/enwiki --log-interval 10 --max-global-batch-size 32";

// For ranks elsewhere, the program prints the planner's answer to stdout and nothing else. It needs no
// launcher, data, tokenizer or devices.
TEST(PretrainPlan, OnlyPlansWhatAutoplanPlans) {
  const CommandResult planned = run_command(app("pretrain") + " " + kGpt22b);
  const CommandResult asked = run_command(app("autoplan") + " " + kGpt22b);
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(planned.out, asked.out);
  EXPECT_NE(planned.out.find("--tensor-model-parallel-size "), std::string::npos) << planned.out;
}

// Every DLC container sets these variables. The program must only plan: the other server would never connect.
TEST(PretrainPlan, OnlyPlansInAContainerOfDlc) {
  const std::string container = "RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=23456 timeout 60 ";
  const CommandResult planned = run_command(container + app("pretrain") + " " + kGpt22b);
  const CommandResult asked = run_command(app("autoplan") + " " + kGpt22b);
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(planned.out, asked.out);
}

/// Converts options like "--num-layers 48 …" into a config file.
std::string as_file(const std::string& options) {
  return test::replaced(options, "--([a-z-]+) (\\S+) ?", "$1: $2\n");
}

TEST(PretrainPlan, AnswersTheSameHoweverAnOptionIsGiven) {
  const test::TempDir folder;
  const std::string planners = " --attention-backend unfused --device-memory-gb 60 --top 3";
  write_file(folder / "run.yaml", as_file(kGpt22b + planners));
  const CommandResult asked = run_command(app("autoplan") + " " + kGpt22b + planners);
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_NE(asked.out.find(" --attention-backend unfused "), std::string::npos) << asked.out;
  const std::string sizes = test::replaced(kGpt22b + planners, "--device-memory-gb 60", "");
  for (const std::string& command :
       {app("pretrain") + " " + kGpt22b + planners, app("pretrain") + " --config " + (folder / "run.yaml"),
        "DEVICE_MEMORY_GB=60 " + app("pretrain") + " " + sizes}) {
    const CommandResult planned = run_command(command);
    EXPECT_EQ(planned.code, 0) << planned.err;
    EXPECT_EQ(planned.out, asked.out) << command;
  }
}

TEST(PretrainPlan, RefusesDlcsOtherModels) {
  const std::string bert = test::replaced(kGpt22b, "GPT ", "BERT ");
  for (const char* program : {"pretrain", "autoplan"}) {
    const CommandResult refused = run_command(app(program) + " " + bert);
    EXPECT_EQ(refused.code, 64) << program;
    EXPECT_NE(refused.err.find("--task-type \"llmacc.megatron.BERT\""), std::string::npos) << refused.err;
  }
}

class PretrainPlanApp : public PretrainApp {
 protected:
  /// The fixture's model, with the batch sizes left to the planner.
  std::string open() const {
    return test::replaced(kModel, "--micro-batch-size 2 --global-batch-size 4 ", "") +
           "--task-type llmacc.megatron.GPT --max-global-batch-size 8 ";
  }
  static std::string decided(const std::string& log) {
    const test::Pattern::Match found = test::Pattern("planned for .*: (--tensor[^\n]*)").first_in(log);
    EXPECT_FALSE(found.empty()) << log;
    return found.empty() ? "" : found[1];
  }
  std::vector<double> losses(const std::string& name) const { return test::train_losses(dir_ / name); }
};

// Without bf16, a plan for ranks elsewhere is refused, since a GPU's plan is in 16 bits. A run that trains
// here uses the precision of its options, whatever device it is planned for.
TEST_F(PretrainPlanApp, TrainsWithoutBf16AndPlansNoRunInFp32) {
  const CommandResult asked = run_command(app("pretrain") + " " + kGpt22b + " --no-bf16");
  EXPECT_EQ(asked.code, 64) << asked.all();
  EXPECT_NE(asked.err.find("--bf16 false: a device's plan is in 16 bits"), std::string::npos) << asked.err;
  const CommandResult trained = run(open() + "--gpu h100 --no-bf16");
  EXPECT_EQ(trained.code, 0) << trained.all();
}

// The source's page: "only the global batch size, or its maximum" starts the planner.
TEST_F(PretrainPlanApp, PlansForAGlobalBatchAlone) {
  const std::string alone = test::replaced(kModel, "--micro-batch-size 2 ", "");
  const CommandResult planned = run(alone + "--nproc 2");
  ASSERT_EQ(planned.code, 0) << planned.all();
  EXPECT_NE(decided(planned.all()).find("--micro-batch-size "), std::string::npos) << planned.all();
  for (const std::string& whole :
       {kModel + std::string("--nproc 2"), alone + "--nproc 2 --micro-batch-size 2 --data-parallel-size 2"}) {
    const CommandResult trained = run(whole);
    EXPECT_EQ(trained.code, 0) << trained.all();
    EXPECT_EQ(trained.all().find("planned for"), std::string::npos) << trained.all();
  }
  EXPECT_NE(run(alone + "--nproc 2 --data-parallel-size 2").all().find("--micro-batch-size is missing"),
            std::string::npos);
}

// A run trains as it logs: a run that is given the logged flags by hand has the same losses.
TEST_F(PretrainPlanApp, PlansForItsRanksAndTrains) {
  for (const char* ranks : {"", "--nproc 2 "}) {
    std::filesystem::remove(dir_ / "planned.jsonl");
    std::filesystem::remove(dir_ / "byhand.jsonl");
    const CommandResult planned = run(open() + ranks + "--log-json planned.jsonl");
    ASSERT_EQ(planned.code, 0) << planned.all();
    EXPECT_NE(planned.out.find(" > why: of "), std::string::npos) << planned.out;
    const std::string byhand =
        test::replaced(kModel, "--micro-batch-size 2 --global-batch-size 4 ", "") + decided(planned.out);
    const CommandResult again = run(byhand + " " + ranks + "--log-json byhand.jsonl");
    ASSERT_EQ(again.code, 0) << again.all();
    EXPECT_EQ(losses("planned.jsonl"), losses("byhand.jsonl"));
    EXPECT_EQ(losses("planned.jsonl").size(), 20U);
  }
}

TEST_F(PretrainPlanApp, PlansTheSameHoweverAnOptionIsGiven) {
  const std::string sizes =
      "--nproc 2 --tensor-model-parallel-size 2 --micro-batch-size 1 --gpu h100 --bf16 ";
  write_file(dir_ / "run.yaml",
             "nproc: 2\ntensor-model-parallel-size: 2\nmicro-batch-size: 1\ngpu: h100\nbf16: true\n");
  const CommandResult words = run(open() + sizes), file = run(open() + "--config run.yaml");
  ASSERT_EQ(words.code, 0) << words.all();
  ASSERT_EQ(file.code, 0) << file.all();
  const auto plan = [](const std::string& log) {
    std::string lines;
    for (const std::string& line : split(log, '\n'))
      if (line.starts_with("planned for ") || line.starts_with(" > ")) lines += line + '\n';
    return lines;
  };
  EXPECT_NE(plan(words.out).find(" > why: of "), std::string::npos) << words.out;
  EXPECT_EQ(plan(file.out), plan(words.out));
}

// Training ignores Megatron's options for how attention is computed, but a plan for a GPU depends on them.
TEST_F(PretrainPlanApp, PlansWithOptionsThatTheRunIgnores) {
  const auto refused = [this](const std::string& options, const std::string& part) {
    const CommandResult result = run(open() + "--gpu h100 --bf16 " + options);
    EXPECT_EQ(result.code, 64) << options << result.all();
    EXPECT_NE(result.err.find(part), std::string::npos) << options << result.err;
  };
  write_file(dir_ / "run.yaml", "attention-backend: unfused\n");
  refused("--attention-backend unfused --use-flash-attn",
          "--attention-backend unfused contradict each other");
  refused("--config run.yaml --use-flash-attn", "--attention-backend unfused contradict each other");
  refused("--no-masked-softmax-fusion", "has no effect where no scores are kept");
  EXPECT_EQ(run(open() + "--gpu h100 --no-masked-softmax-fusion --config run.yaml").code, 0);
  refused("--attention-backend fast", "--attention-backend \"fast\": wanted one of auto, flash");
  EXPECT_EQ(train("--attention-backend fast").code, 0) << "has no meaning without a plan";
}

// A command that only asks for plans, and one that plans and trains, treat an option alike: as a run does,
// except that a plan obeys what only the planner knows.
TEST_F(PretrainPlanApp, HasOneFateOfAnOptionInBothForms) {
  struct Fate {
    const char* options;
    int code;
    const char *part, *ignored = "";
  };
  for (const Fate& fate :
       {Fate{"--calculate-per-token-loss", 64, "--calculate-per-token-loss is not supported; "},
        {"--moe-router-fusion", 64, "--moe-router-fusion is not supported; "},
        {"--num-experts 8", 64, "--num-experts"},
        {"--fp8-format hybrid", 64, "--fp8-format is not supported; "},
        {"--optimizer-cpu-offload", 0, "ignored, no", " --optimizer-cpu-offload"},
        {"--min-lr 5", 64, "--min-lr 5 is greater than --lr 0.01"},
        {"--split many", 64, "--split \"many\": wanted"},
        {"--manual-gc foo", 64, "unexpected argument \"foo\""},
        {"--recompute-modules foo bar --recompute-granularity selective", 64,
         "--recompute-modules foo bar is not planned; give core_attn"},
        {"--recompute-modules core_attn", 64, "needs --recompute-granularity selective"},
        {"--recompute-modules core_attn --recompute-granularity selective", 0, ""},
        {"--attention-backend unfused --gpu A100-SXM-80GB", 0, ""},
        {"--hf config.json", 64, "unknown option \"--hf\""}})
    for (const char* ranks : {"--nproc 2 --bf16 ", "--world-size 2 "}) {
      const CommandResult result = run(open() + ranks + fate.options);
      SCOPED_TRACE(std::string(ranks) + fate.options);
      EXPECT_EQ(result.code, fate.code) << result.all();
      EXPECT_NE(result.all().find(fate.part), std::string::npos) << result.all();
      const std::string ignored = "ignored, no effect here:" + std::string(fate.ignored) + "\n";
      EXPECT_EQ(result.all().find(ignored) != std::string::npos, *fate.ignored != '\0') << result.all();
      EXPECT_EQ(result.all().find("ignored, no") != std::string::npos, *fate.ignored != '\0') << result.all();
    }
}

// Here a plan is one of our own runs, which have graphs; for other devices it is one of Megatron-LM's.
TEST_F(PretrainPlanApp, PlansCudaGraphsOfItsOwnRuns) {
  const CommandResult ours = run(open() + "--nproc 2 --bf16 --cuda-graph-impl local");
  EXPECT_EQ(ours.code, 0) << ours.all();
  const CommandResult other = run(open() + "--world-size 2 --cuda-graph-impl local");
  EXPECT_EQ(other.code, 64) << other.all();
  EXPECT_NE(other.all().find("--cuda-graph-impl local is not planned; give --software-features cuda_graphs"),
            std::string::npos)
      << other.all();
}

TEST_F(PretrainPlanApp, ShapesAnswersOnlyWhereItAnswers) {
  const CommandResult asked = run(open() + "--world-size 2 --top 1 --json"),
                      run_of_ranks = run(open() + "--nproc 2 --top 1 --json");
  EXPECT_EQ(asked.code, 0) << asked.all();
  EXPECT_EQ(asked.out.substr(0, 1), "{") << asked.all();
  EXPECT_EQ(run_of_ranks.code, 64) << run_of_ranks.all();
  EXPECT_NE(run_of_ranks.err.find("--top is not supported; "), std::string::npos) << run_of_ranks.err;
}

// A plan is often made where the model's weights and the run's data are not.
TEST_F(PretrainPlanApp, AnswersForAModelWithoutWeights) {
  std::filesystem::create_directory(dir_ / "model");
  write_file(dir_ / "model/config.json",
             R"({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 12,
                 "vocab_size": 61, "activation_function": "gelu_new"})");
  const CommandResult result =
      run("--model-name-or-path model --input-dir nowhere --seq-length 12 --world-size 2 "
          "--max-global-batch-size 8");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find("--num-layers 2"), std::string::npos) << result.out;
}

// If the run takes its sizes from a checkpoint, the planner must use them, too.
TEST_F(PretrainPlanApp, PlansTheModelOfACheckpoint) {
  ASSERT_EQ(train("--save saved --swiglu --ffn-hidden-size 32 --train-iters 20").code, 0);
  const std::string without_model =
      test::replaced(open(), "--num-layers 2 --hidden-size 16 --num-attention-heads 2 ", "");
  const CommandResult result =
      run(without_model + "--load saved --finetune --use-checkpoint-args --gpu h100 --nproc 2");
  ASSERT_EQ(result.code, 0) << result.all();
  const CommandResult given =
      run(open() + "--swiglu --ffn-hidden-size 32 --gpu h100 --nproc 2 --load saved --finetune");
  ASSERT_EQ(given.code, 0) << given.all();
  EXPECT_NE(decided(result.out), "");
  EXPECT_EQ(decided(result.out), decided(given.out));
}

// A message about the options that the run and the planner both read must appear only once.
TEST_F(PretrainPlanApp, SaysOnceWhatItMakesOfTheWords) {
  const auto times = [](const std::string& log, const std::string& part) {
    size_t count = 0;
    for (size_t at = log.find(part); at != std::string::npos; at = log.find(part, at + 1)) ++count;
    return count;
  };
  const CommandResult trained = run(open() + "--nproc 2 --use-mcore-models --seed 7--log-interval 5"),
                      planned = run_command(app("pretrain") + " " + kGpt22b +
                                            " --use-mcore-models --hidden-dropout 0.1--gpu h100");
  for (const CommandResult& result : {trained, planned}) {
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(times(result.all(), "ignored, no effect here: "), 1U) << result.all();
    EXPECT_EQ(times(result.all(), "was read as two words"), 1U) << result.all();
  }
  EXPECT_NE(trained.all().find("ignored, no effect here: --use-mcore-models\n"), std::string::npos)
      << trained.all();
}

TEST_F(PretrainPlanApp, KeepsWhatTheCommandLineFixes) {
  const CommandResult result = run(open() + "--nproc 2 --tensor-model-parallel-size 2 --micro-batch-size 1");
  ASSERT_EQ(result.code, 0) << result.all();
  const std::string flags = decided(result.out);
  EXPECT_NE(flags.find("--tensor-model-parallel-size 2 "), std::string::npos) << flags;
  EXPECT_NE(flags.find("--micro-batch-size 1 "), std::string::npos) << flags;
  EXPECT_EQ(run(open() + "--nproc 1 --sequence-parallel").code, 0) << "S1: turned off";
  const CommandResult data = run(open() + "--nproc 2 --data-parallel-size 1");
  ASSERT_EQ(data.code, 0) << data.all();
  EXPECT_NE(data.out.find(" on each of 1 data-parallel ranks"), std::string::npos) << data.out;
  // PaddleNLP's degree fixes the number of data-parallel ranks.
  const CommandResult degree = run(open() + "--nproc 2 --sharding stage1 --sharding-parallel-degree 2");
  ASSERT_EQ(degree.code, 0) << degree.all();
  EXPECT_NE(degree.out.find(" on each of 2 data-parallel ranks"), std::string::npos) << degree.out;
  const CommandResult whole = run(open() + "--nproc 2 --sharding stage1 --sharding-parallel-degree 1");
  ASSERT_EQ(whole.code, 0) << whole.all();
  EXPECT_NE(whole.out.find(" on each of 1 data-parallel ranks"), std::string::npos) << whole.out;
  const CommandResult batch = run(open() + "--nproc 2 --global-batch-size 4");
  ASSERT_EQ(batch.code, 0) << batch.all();
  EXPECT_NE(decided(batch.out).find("--global-batch-size 4"), std::string::npos) << batch.out;
  EXPECT_TRUE(test::Pattern("global batch size: +4 \\|").is_in(batch.out)) << batch.out;
}

// Without a precision option, the planner by itself would assume 16 bits for a named device. A run trains in
// 32 bits, so its plan must, too.
TEST_F(PretrainPlanApp, PlansThePrecisionThatItTrainsIn) {
  const auto memory = [&](const std::string& options) {
    const CommandResult result = run(open() + "--gpu A100-SXM-80GB " + options);
    EXPECT_EQ(result.code, 0) << result.all();
    const test::Pattern::Match found = test::Pattern("it takes ([0-9.]+ [KMG]iB) of").first_in(result.out);
    EXPECT_FALSE(found.empty()) << result.out;
    return found.empty() ? "" : found[1];
  };
  const std::string half = memory("--bf16"), single = memory("");
  EXPECT_NE(single, half);
}

// Only rank 0 plans and sends the plan to the others: plans from each rank's own measurements could differ.
TEST_F(PretrainPlanApp, TellsRanksThatAreProcesses) {
  SKIP_WITHOUT_GLOO();
  const std::string port = std::to_string(test::free_port());
  std::string script = "cd " + dir_.path().string() + "\n";
  for (const char* rank : {"0", "1"})
    script += concat("RANK=", rank, " LOCAL_RANK=", rank,
                     " WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 ", "MASTER_PORT=", port, " ",
                     app("pretrain"), " ", open(), " > log.", rank, " 2>&1 & p", rank, "=$!\n");
  EXPECT_EQ(run_command(script + "wait $p0; a=$?; wait $p1; b=$?; [ $a = 0 ] && [ $b = 0 ]").code, 0)
      << file("log.0") << file("log.1");
  EXPECT_NE(file("log.0").find(" iteration       20/      20 | "), std::string::npos) << file("log.0");
  EXPECT_NE(decided(file("log.0")), "");
}

TEST_F(PretrainPlanApp, RefusesAPlanForNoSamples) {
  const CommandResult result = run(kModel + "--max-global-batch-size 0");
  EXPECT_EQ(result.code, 64) << result.all();
  EXPECT_NE(result.err.find("--max-global-batch-size 0: wanted at least 1"), std::string::npos) << result.err;
}

TEST_F(PretrainPlanApp, SaysThatNothingFits) {
  const CommandResult result = run(open() + "--device-memory-gb 0.000001");
  EXPECT_EQ(result.code, 64) << result.all();
  EXPECT_NE(result.err.find("no layout of 1 ranks fits"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace megalith
