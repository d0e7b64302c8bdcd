#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/apps/autoplan/commands.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"
#include "tests/support/terminal.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::k22b;
using test::kHere;
using test::run_command;

TEST(Autoplan, RanksPlansForTheDocumentedCommand) {
  const CommandResult result =
      run_command(app("autoplan") + " --task-type llmacc.megatron.GPT" + k22b + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_EQ(answer["parameters"].as_double(),
            22068480000.0);  // 48 * (12 h^2 + 13 h) + (50257 + 2048) h + 2 h
  const Json::Array& plans = answer["plans"].as_array();
  ASSERT_EQ(plans.size(), 10u);
  for (const Json& plan : plans) {
    const int64_t ranks = plan["tensor"].as_int() * plan["pipeline"].as_int() * plan["context"].as_int();
    EXPECT_EQ(ranks * plan["data"].as_int(), 64);
    EXPECT_LE(plan["global_batch"].as_int(), 16);
    EXPECT_LE(plan["memory_bytes"]["device"].as_double(), answer["device_memory_bytes"].as_double());
  }
}

TEST(Autoplan, SaysHowManyDevicesADeadlineAndABudgetAsk) {
  const std::string batch =
      " --world-size 64 --local-world-size 8 --global-batch-size 1024 --num-layers 48 --num-attention-heads "
      "64"
      " --hidden-size 6144 --seq-length 2048 --vocab-size 50257";
  const CommandResult result = run_command(app("autoplan") + batch +
                                           " --train-iters 143052 --deadline-days 30 --gpu-hour-price 2"
                                           " --budget 110000 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json scaling = Json::parse(result.out, "answer")["scaling"];
  EXPECT_EQ(scaling["tokens"].as_double(), 143052.0 * 1024 * 2048);
  EXPECT_LE(scaling["soonest"]["days"].as_double(), scaling["fewest"]["days"].as_double());
  EXPECT_LE(scaling["soonest"]["cost"].as_double(), 110000);
  EXPECT_LE(scaling["fewest"]["days"].as_double(), 30);
  const CommandResult no_price = run_command(app("autoplan") + batch + " --budget 5 --train-tokens 1e9");
  EXPECT_EQ(no_price.code, 64);
  EXPECT_NE(no_price.err.find("--budget 5 needs --gpu-hour-price"), std::string::npos) << no_price.err;
  const CommandResult no_tokens = run_command(app("autoplan") + batch + " --deadline-days 5");
  EXPECT_EQ(no_tokens.code, 64);
  EXPECT_NE(no_tokens.err.find("need --train-tokens"), std::string::npos) << no_tokens.err;
}

TEST(Autoplan, TakesTheWordPlan) {
  const CommandResult plan = run_command(app("autoplan") + " plan" + k22b + " --json --top 1");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(Json::parse(plan.out, "plan")["plans"].as_array().size(), 1u);
}

const char* const kSmall =
    " --world-size 8 --global-batch-size 32 --num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 ";

TEST(Autoplan, ObeysTheTrainersOptionsOrRefusesThem) {
  const auto plans = [](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + kSmall + options + " --json");
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, options);
  };
  EXPECT_EQ(plans("--fp16")["precision"].as_string(), "fp16");
  EXPECT_EQ(plans("--bf16")["precision"].as_string(), "bf16");
  const std::pair<const char*, const char*> kRecompute[] = {
      {"--recompute-activations", "attention"},
      {"--recompute-granularity selective", "attention"},
      {"--recompute", "full"}};
  for (const auto& [option, means] : kRecompute) {
    const Json answer = plans(option);
    for (const Json& plan : answer["plans"].as_array())
      EXPECT_EQ(plan["recompute"].as_string(), means) << option;
  }
  const CommandResult text = run_command(app("autoplan") + kSmall + "--fp16");
  EXPECT_NE(text.out.find(" --fp16\n"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("--bf16"), std::string::npos) << text.out;
  for (const char* option : {"--fp16 --bf16", "--data-parallel-size 3"}) {
    const CommandResult refused = run_command(app("autoplan") + kSmall + option);
    EXPECT_EQ(refused.code, 64) << option;
    EXPECT_NE(refused.err.find(std::string(option).substr(0, 6)), std::string::npos) << refused.err;
  }
}

TEST(Autoplan, FitsATerminalOfEightyColumns) {
  const CommandResult brief = test::run_on_terminal(app("autoplan") + kSmall, 80);
  EXPECT_EQ(brief.code, 0) << brief.out;
  EXPECT_LE(test::longest_line(brief.out), 80u) << brief.out;
  const CommandResult shown = test::run_on_terminal(app("autoplan") + kSmall + "--explain", 80);
  EXPECT_EQ(shown.code, 0) << shown.out;
  EXPECT_LE(test::longest_line(shown.out), 80u) << shown.out;
  EXPECT_NE(shown.out.find("tokens/s"), std::string::npos) << "columns that did not fit continue below";
  // Checks that a command printed over several lines is still one command for the shell.
  const size_t begin = shown.out.find("  torchrun "), end = shown.out.find("\n\n", begin);
  ASSERT_NE(end, std::string::npos) << shown.out;
  const CommandResult words =
      run_command("torchrun() { printf '%s\\n' \"$*\"; }; " + shown.out.substr(begin, end - begin));
  EXPECT_EQ(std::count(words.out.begin(), words.out.end(), '\n'), 1) << words.out << words.err;
  EXPECT_NE(words.out.find("--global-batch-size 32"), std::string::npos) << words.out;
}

TEST(Autoplan, JsonCarriesTheClosestPlanAndFailsAsTextDoes) {
  const CommandResult result = run_command(app("autoplan") + k22b + " --device-memory-gb 4 --json");
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("no plan fits; \"closest\" holds the nearest one"), std::string::npos)
      << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_TRUE(answer["plans"].as_array().empty());
  EXPECT_GT(answer["closest"]["lacking_bytes"].as_double(), 0);
  EXPECT_FALSE(answer["rejected"].as_object().empty());
}

TEST(Autoplan, BothSearchesPrintTheSamePlans) {
  const auto plans = [&](const std::string& search) {
    const CommandResult result = run_command(app("autoplan") + k22b + " --json --top 20 --search " + search);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["plans"].dump();
  };
  EXPECT_EQ(plans("bounded"), plans("exhaustive"));
}

TEST(Autoplan, SaysWhatMakesTheClosestPlanFit) {
  const std::string command = app("autoplan") + k22b +
                              " --device-memory-gb 45 --sharding none"
                              " --tensor-model-parallel-size 8 --pipeline-model-parallel-size 1";
  const CommandResult json = run_command(command + " --json"), text = run_command(command);
  ASSERT_EQ(text.code, 64) << text.out;
  const Json answer = Json::parse(json.out, "answer");
  const std::string change = answer["smallest_change"].as_string();
  EXPECT_TRUE(change.starts_with("--")) << change;
  EXPECT_NE(text.err.find("  fits with " + change), std::string::npos) << text.err;
}

// Text and JSON must show the figures that the trainer itself computes for each stage.
TEST(Autoplan, PrintsTheMemoryOfEveryStageAndTheLaunchLines) {
  const std::string command =
      app("autoplan") + kHere + " --world-size 2 --pipeline-model-parallel-size 2 --device-memory-gb 4";
  const CommandResult json = run_command(command + " --json"), text = run_command(command + " --explain");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json answer = Json::parse(json.out, "answer");
  const Json::Array& stages = answer["stage_memory_bytes"].as_array();
  ASSERT_EQ(stages.size(), 2u);
  double most = 0;
  for (const Json& stage : stages) most = std::max(most, stage["allocated"].as_double());
  EXPECT_EQ(most, answer["plans"].as_array().front()["trainer_bytes"].as_double());
  EXPECT_EQ(text.out.find("as the stage before: 1\n") == std::string::npos,
            text.out.find("\n    1       1  ") != std::string::npos)
      << text.out;
  for (const std::string program : {"megatron", "megalith"})
    for (const std::string launcher : {"torchrun", "srun", "mpirun"})
      EXPECT_NE(answer["launch"][program][launcher].as_string().find("--pipeline-model-parallel-size 2"),
                std::string::npos)
          << program << launcher;
}

// By default the planner skips the memory of candidates that are proven slower, so it cannot count how many
// fit; an exhaustive search can.
TEST(Autoplan, CountsWhatFitsWhereAllIsAsked) {
  const CommandResult bounded = run_command(app("autoplan") + k22b + " --explain");
  EXPECT_NE(bounded.out.find(" priced; the others are proven slower"), std::string::npos) << bounded.out;
  const CommandResult all = run_command(app("autoplan") + k22b + " --explain --search exhaustive");
  EXPECT_NE(all.out.find(" priced, of which "), std::string::npos) << all.out;
  EXPECT_EQ(all.out.find("proven slower"), std::string::npos) << all.out;
  const CommandResult json = run_command(app("autoplan") + k22b + " --json");
  EXPECT_EQ(json.out.find("\"fitting\""), std::string::npos) << json.out;
}

// The planner searches a size that is not given; it does not assume 1.
TEST(Autoplan, SearchesTheSizesBesideTheDataRanks) {
  const std::string model = test::replaced(std::string(k22b), "--world-size 64", "");
  const auto run = [&](const std::string& options) { return run_command(app("autoplan") + model + options); };
  const CommandResult result = run(" --world-size 16 --data-parallel-size 2 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  ASSERT_FALSE(answer["plans"].as_array().empty());
  for (const Json& plan : answer["plans"].as_array()) {
    EXPECT_EQ(plan["data"].as_int(), 2);
    EXPECT_EQ(plan["tensor"].as_int() * plan["pipeline"].as_int() * plan["context"].as_int(), 8);
  }
  const std::pair<const char*, const char*> kWrong[] = {
      {" --world-size 16 --data-parallel-size 3",
       "--data-parallel-size 3 * 1 ranks of a model are 3, which does not divide --world-size 16"},
      {" --world-size 16 --data-parallel-size 2 --tensor-model-parallel-size 4 --context-parallel-size 1 "
       "--pipeline-model-parallel-size 1",
       "--data-parallel-size 2 * 4 ranks of a model are 8, not --world-size 16"},
      {" --world-size 16 --nproc 4", "--world-size 16 and --nproc 4 contradict each other"}};
  for (const auto& [options, says] : kWrong) {
    const CommandResult wrong = run(options);
    EXPECT_EQ(wrong.code, 64) << options;
    EXPECT_NE(wrong.err.find(says), std::string::npos) << wrong.err;
  }
}

TEST(Autoplan, SimulatesAStepOnManyDevices) {
  const CommandResult text = run_command(app("autoplan") + k22b + " --simulate 64,512");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("One step of this version's trainer, simulated on A100-SXM-80GB in bf16;"),
            std::string::npos)
      << text.out;
  const std::string assumed = "--simulate: the step is in bf16, as all plans for GPUs are";
  EXPECT_NE(text.err.find(assumed), std::string::npos) << text.err;
  const CommandResult said = run_command(app("autoplan") + k22b + " --simulate 64 --fp16");
  EXPECT_NE(said.out.find("A100-SXM-80GB in fp16;"), std::string::npos) << said.out;
  EXPECT_EQ(said.err.find("as all plans for GPUs are"), std::string::npos) << said.err;
  const CommandResult json = run_command(app("autoplan") + k22b + " --simulate 64,512 --json");
  const Json steps = Json::parse(json.out, "answer")["simulated"];
  ASSERT_EQ(steps.as_array().size(), 2U) << json.out;
  for (const Json& step : steps.as_array()) {
    EXPECT_GE(step["step_seconds"].as_double(), step["ops_seconds"].as_double());
    EXPECT_GT(step["mfu"].as_double(), 0);
    EXPECT_LT(step["mfu"].as_double(), 1);
  }
  EXPECT_EQ(steps.as_array()[1]["devices"].as_int(), 512);
  const CommandResult wrong = run_command(app("autoplan") + k22b + " --simulate 64,many");
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("--simulate \"64,many\": \"many\" is not a number of devices"), std::string::npos)
      << wrong.err;
}

TEST(Autoplan, ObeysOrRefusesEachParallelOption) {
  const auto best = [&](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + k22b + " --json --top 1 " + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    return Json::parse(result.out, "answer")["plans"].as_array().at(0);
  };
  EXPECT_EQ(best("--tensor-model-parallel-size 2")["tensor"].as_int(), 2);
  EXPECT_EQ(best("--context-parallel-size 4")["context"].as_int(), 4);
  EXPECT_EQ(best("--sharding stage3")["zero_stage"].as_int(), 3);
  EXPECT_EQ(best("--recompute-granularity full --recompute-method uniform")["recompute"].as_string(), "full");
  EXPECT_EQ(best("--recompute-granularity selective")["recompute"].as_string(), "attention");
  EXPECT_EQ(best("--pipeline-layers 11,13,13,11")["stage_layers"].dump(), "[11, 13, 13, 11]");
  EXPECT_EQ(best("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 9")["stage_layers"]
                .as_array()[0]
                .as_int(),
            9);
  const auto refusal = [&](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + k22b + ' ' + options);
    EXPECT_EQ(result.code, 64) << options;
    return result.err;
  };
  EXPECT_EQ(best("--data-parallel-size 4")["data"].as_int(), 4);
  EXPECT_NE(
      refusal("--expert-model-parallel-size 2").find("--expert-model-parallel-size 2 needs --num-experts"),
      std::string::npos);
  EXPECT_NE(refusal("--expert-tensor-parallel-size 2").find("--expert-tensor-parallel-size 2 needs"),
            std::string::npos);
  EXPECT_NE(refusal("--gradient-accumulation-steps 2").find("--gradient-accumulation-steps"),
            std::string::npos);
  EXPECT_NE(refusal("--rampup-batch-size 8 8 1000").find("--rampup-batch-size"), std::string::npos) << "B2";
  EXPECT_NE(refusal("--step-batch-size-schedule 0:8").find("--step-batch-size-schedule: a plan is for one"),
            std::string::npos);
  EXPECT_NE(refusal("--num-distributed-optimizer-instances 2").find("--num-distributed-optimizer-instances"),
            std::string::npos)
      << "X1";
  EXPECT_NE(refusal("--fp8-recipe mxfp8").find("--fp8-recipe"), std::string::npos);
}

// A given --global-batch-size is kept if --max-global-batch-size allows it. docs/from-dlc.md: "Sizes that the
// command line gives are kept".
TEST(Autoplan, KeepsAGivenGlobalBatchBelowTheLargest) {
  const CommandResult kept = run_command(app("autoplan") + k22b + " --global-batch-size 8 --json --top 3");
  ASSERT_EQ(kept.code, 0) << kept.err;
  const Json answer = Json::parse(kept.out, "answer");
  ASSERT_FALSE(answer["plans"].as_array().empty());
  for (const Json& plan : answer["plans"].as_array()) EXPECT_EQ(plan["global_batch"].as_int(), 8);
  const CommandResult above = run_command(app("autoplan") + k22b + " --global-batch-size 64");
  EXPECT_EQ(above.code, 64);
  EXPECT_NE(above.err.find("--global-batch-size 64 is above --max-global-batch-size 16"), std::string::npos)
      << above.err;
}

// 31 layers and an embedding or a loss that counts as a layer are 32, which divide into stages and chunks.
TEST(Autoplan, InterleavesWhereOneEndCountsAsALayer) {
  const std::string model =
      " --world-size 16 --global-batch-size 64 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
      "--vocab-size 50257 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4 --json";
  for (const std::string end : {"embedding", "loss"}) {
    const CommandResult result =
        run_command(app("autoplan") + model + " --num-layers 31 --account-for-" + end + "-in-pipeline-split");
    ASSERT_EQ(result.code, 0) << result.err;
    const Json plan = Json::parse(result.out, "answer")["plans"].as_array().front();
    EXPECT_EQ(plan["chunks"].as_int(), 4);  // (31 + 1) layers / (2 stages * 4)
    const Json::Array& layers = plan["stage_layers"].as_array();
    EXPECT_EQ(layers.front().as_int(), end == "embedding" ? 15 : 16);
    EXPECT_EQ(layers.back().as_int(), end == "embedding" ? 16 : 15);
  }
}

TEST(Autoplan, RefusesStagesOfMoreLayersThanTheModelHas) {
  const auto refused = [&](const std::string& options, const std::string& words) {
    const CommandResult result = run_command(app("autoplan") + k22b + ' ' + options);
    EXPECT_EQ(result.code, 64) << options;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  refused("--num-layers-per-virtual-pipeline-stage 4194304 --pipeline-model-parallel-size 1024",
          "V1: 48 layers are not a multiple of pipeline 1024 * 4194304 of");
  refused(
      "--software nanotron --num-layers-per-virtual-pipeline-stage 12 --pipeline-model-parallel-size 2",
      "12: --software nanotron divides 48 layers over 2 stages by a rule of its own, which is not planned");
  refused("--pipeline-layers 2147483648",
          "--pipeline-layers: \"2147483648\" is not a number of layers from 1 to 48 (--num-layers)");
  refused("--pipeline-layers 24,49", "--pipeline-layers: \"49\" is not a number of layers from 1 to 48");
  refused("--decoder-first-pipeline-num-layers 2147483647 --decoder-last-pipeline-num-layers 2147483647",
          "--decoder-first-pipeline-num-layers 2147483647 is more than the 48 layers of the model");
  refused("--num-layers 2000000000", "--num-layers 2000000000 is more than 65536");
  refused("--world-size 0", "--world-size 0: wanted a number of devices from 1");
}

TEST(Autoplan, WritesAPageATraceAndAJob) {
  const test::TempDir folder;
  const std::string page = folder / "plan.html", trace = folder / "plan.json";
  const CommandResult result =
      run_command(app("autoplan") + k22b + " --emit k8s --html " + page + " --trace " + trace);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out, "job")["kind"].as_string(), "PyTorchJob");
  EXPECT_NE(read_file(page).find("</html>"), std::string::npos);
  EXPECT_FALSE(Json::load(trace)["traceEvents"].as_array().empty());
}

}  // namespace
}  // namespace megalith
