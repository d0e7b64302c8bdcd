// Plans for mixtures of experts, which only Megatron-LM trains.
#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

const char* const kMixtral =
    " --world-size 64 --local-world-size 8 --gpu h100 --global-batch-size 256 --num-layers 32 --hidden-size "
    "4096 "
    "--num-attention-heads 32 --group-query-attention --num-query-groups 8 --ffn-hidden-size 14336 "
    "--seq-length "
    "4096 --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
    "--untie-embeddings-and-output-weights --vocab-size 32000 --attention-dropout 0 --hidden-dropout 0 "
    "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --moe-aux-loss-coeff 1e-2 ";

TEST(AutoplanMixture, PlansAMixtureForMegatronOnly) {
  const CommandResult result = run_command(app("autoplan") + kMixtral + "--json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_EQ(answer["parameters"].as_double(), 46702792704.0);  // the parameter count of the released model
  EXPECT_EQ(answer["active_parameters"].as_double(), 12879925248.0);
  ASSERT_EQ(answer["plans"].as_array().size(), 10u);
  for (const Json& plan : answer["plans"].as_array()) {
    const int64_t experts =
        plan["expert"].as_int() * plan["expert_tensor"].as_int() * plan["expert_data"].as_int();
    EXPECT_EQ(experts * plan["pipeline"].as_int(), 64);
    EXPECT_TRUE(plan["megatron_only"].as_bool());
    const Json::Array &ends = plan["step_seconds_of_imbalance"].as_array(),
                      &load = plan["token_imbalance"].as_array();
    EXPECT_LE(ends[0].as_double(), plan["step_seconds"].as_double());
    EXPECT_GE(ends[1].as_double(), plan["step_seconds"].as_double());
    EXPECT_LT(plan["step_seconds_low"].as_double(), ends[0].as_double());
    EXPECT_GT(plan["step_seconds_high"].as_double(), ends[1].as_double());
    EXPECT_EQ(load[0].as_double(), 1);
    EXPECT_LE(load[1].as_double(), 1.72);
    EXPECT_NE(plan["options"].as_string().find("--expert-model-parallel-size"), std::string::npos);
  }
  const CommandResult text = run_command(app("autoplan") + kMixtral + "--explain");
  for (const char* part :
       {"46.703 billion parameters (12.880 of them for a token)", "Megatron only", "ep", "etp",
        "token imbalance: the fullest rank of experts gets 1.00 to", "what experts cost is a belief",
        "plan 1 is for Megatron-LM only: this version's trainer has no option for ",
        "--num-experts 8 --moe-router-topk 2"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
}

TEST(AutoplanMixture, ObeysOrRefusesEachOptionOfAMixture) {
  const auto best = [&](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + kMixtral + "--json --top 1 " + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    return Json::parse(result.out, "answer")["plans"].as_array().at(0);
  };
  EXPECT_EQ(best("--expert-model-parallel-size 2")["expert"].as_int(), 2);
  const Json cut = best("--tensor-model-parallel-size 4 --expert-tensor-parallel-size 2");
  EXPECT_EQ(cut["expert_tensor"].as_int(), 2);
  EXPECT_TRUE(cut["sequence_parallel"].as_bool()) << "S2";
  const double plain = best("--expert-model-parallel-size 8")["step_seconds"].as_double();
  EXPECT_LT(
      best("--expert-model-parallel-size 8 --moe-router-force-load-balancing")["step_seconds"].as_double(),
      plain);
  EXPECT_LT(
      best("--expert-model-parallel-size 8 --overlap-moe-expert-parallel-comm")["step_seconds"].as_double(),
      plain);
  EXPECT_EQ(best("--expert-model-parallel-size 8 --moe-expert-capacity-factor 1.25")["token_imbalance"]
                .as_array()[1]
                .as_double(),
            1.25);
  // Sixteen experts on two machines. With the flex dispatcher, a token whose two experts are both on the
  // other machine crosses the network once, not twice.
  const std::string two_machines =
      "--num-experts 16 --expert-model-parallel-size 16 --expert-tensor-parallel-size 1 "
      "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --context-parallel-size 1 "
      "--micro-batch-size 1 --device-memory-gb 1000 --moe-token-dispatcher-type ";
  const Json flex = best(two_machines + "flex");
  EXPECT_LT(flex["step_seconds"].as_double(), best(two_machines + "alltoall")["step_seconds"].as_double());
  const auto refusal = [&](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + kMixtral + options);
    EXPECT_EQ(result.code, 64) << options;
    return result.err + result.out;
  };
  EXPECT_NE(refusal("--expert-model-parallel-size 3")
                .find("W2  8 experts are not a multiple of expert 3; "
                      "nearest that work: 2, 4"),
            std::string::npos);
  EXPECT_NE(
      refusal("--tensor-model-parallel-size 2 --no-sequence-parallel").find("S2  experts with tensor 2 need"),
      std::string::npos);
  EXPECT_NE(
      refusal("--moe-layer-recompute").find("--moe-layer-recompute is not supported; it is not planned"),
      std::string::npos);
  EXPECT_NE(refusal("--simulate 64")
                .find("--simulate simulates a step of this version's trainer, which has no option "
                      "for mixtures of experts (--num-experts)"),
            std::string::npos);
  EXPECT_NE(refusal("--moe-token-dispatcher-type flex --moe-expert-capacity-factor 1.25")
                .find("E5  --moe-expert-capacity-factor needs --moe-token-dispatcher-type alltoall"),
            std::string::npos);
  EXPECT_NE(
      refusal("--overlap-moe-expert-parallel-comm --recompute-granularity full --recompute-method uniform")
          .find("E2  --overlap-moe-expert-parallel-comm needs no layers recomputed whole"),
      std::string::npos);
  EXPECT_NE(refusal("--moe-router-load-balancing-type none")
                .find("how unevenly tokens would then spread is not known"),
            std::string::npos);
  EXPECT_NE(refusal("--moe-shared-expert-gate").find("needs --moe-shared-expert-intermediate-size"),
            std::string::npos);
  EXPECT_NE(refusal("--moe-layer-freq never").find("--moe-layer-freq"), std::string::npos);
  EXPECT_NE(refusal("--q-lora-rank 64").find("--q-lora-rank 64 needs --multi-latent-attention"),
            std::string::npos);
  EXPECT_NE(refusal("--num-experts 0").find("--num-experts"), std::string::npos);
}

// Megatron's scripts put the layer pattern in quotes. The emitted job keeps these quotes inside the shell's
// own.
TEST(AutoplanMixture, PrintsALayerPatternThatTheShellReads) {
  const test::TempDir folder;
  const CommandResult result = run_command(app("autoplan") + kMixtral +
                                           "--moe-layer-freq \"'([0]*3+[1]*29)'\" --micro-batch-size 1 "
                                           "--context-parallel-size 1 --expert-tensor-parallel-size 1 "
                                           "--emit slurm");
  ASSERT_EQ(result.code, 0) << result.err;
  write_file(folder / "job.sh", result.out);
  EXPECT_EQ(run_command("bash -n " + folder / "job.sh").code, 0) << result.out;
  EXPECT_NE(result.out.find(" --moe-layer-freq \"([0]*3+[1]*29)\""), std::string::npos) << result.out;
  const CommandResult wrong = run_command(app("autoplan") + kMixtral + "--moe-layer-freq '1 2'");
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("--moe-layer-freq \"1 2\" is neither a number from 1 nor a list"),
            std::string::npos)
      << wrong.err;
}

// A mixture can also be written as a page, a trace and a job.
TEST(AutoplanMixture, WritesAPageATraceAndAJobOfAMixture) {
  const test::TempDir folder;
  const std::string page = folder / "plan.html", trace = folder / "plan.json";
  const CommandResult result = run_command(app("autoplan") + kMixtral +
                                           "--moe-layer-freq '([0]*3+[1]*29)' --micro-batch-size 1 "
                                           "--context-parallel-size 1 --expert-tensor-parallel-size 1" +
                                           " --emit slurm --html " + page + " --trace " + trace);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("--num-experts 8"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("--moe-layer-freq \"([0]*3+[1]*29)\""), std::string::npos) << result.out;
  const std::string html = read_file(page);
  EXPECT_NE(html.find("of them for a token"), std::string::npos);
  EXPECT_NE(html.find("--expert-model-parallel-size"), std::string::npos);
  EXPECT_NE(html.find("token imbalance"), std::string::npos);
  EXPECT_LT(html.size(), 300000u);
  EXPECT_FALSE(Json::load(trace)["traceEvents"].as_array().empty());
}

TEST(AutoplanMixture, PlansMixturesOfHuggingFace) {
  const test::TempDir folder;
  const Json models = Json::load(MEGALITH_SOURCE_DIR "/docs/mixtures.json")["models"];
  for (const auto& [name, entry] : models.as_object()) {
    const std::string config = folder / (name + ".json");
    write_file(config, entry["config"].dump());
    const CommandResult result = run_command(
        app("autoplan") + " --hf " + config +
        " --gpu h100 --world-size 1024 --global-batch-size 2048 --seq-length 4096 --micro-batch-size 1 "
        "--context-parallel-size 1 --expert-tensor-parallel-size 1 --top 1 --json");
    ASSERT_EQ(result.code, 0) << name << result.err;
    const Json answer = Json::parse(result.out, name);
    EXPECT_NEAR(answer["parameters"].as_double() / entry["parameters"].as_double(), 1, 0.015) << name;
    EXPECT_GT(answer["plans"].as_array().at(0)["mfu"].as_double(), 0.05) << name;
  }
  const auto refusal = [&](const std::string& model, const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + " --hf " + folder / (model + ".json") +
                                             " --gpu h100 --world-size 64 --global-batch-size 64 " + options);
    EXPECT_EQ(result.code, 64) << options;
    return result.err;
  };
  EXPECT_NE(
      refusal("Mixtral-8x7B", "--ffn-hidden-size 4096").find("--ffn-hidden-size 4096 changes nothing of"),
      std::string::npos);
  EXPECT_NE(refusal("DeepSeek-V3", "--kv-channels 64").find("--kv-channels 64 has no effect with"),
            std::string::npos);
  EXPECT_EQ(refusal("DeepSeek-V3", "--v-head-dim 64 --device-memory-gb 1").find("--kv-channels"),
            std::string::npos);
}

// Our trainer supports only dense models. It refuses options for mixtures by name and says what to use.
TEST(AutoplanMixture, IsNamedWhereTrainingRefusesAMixture) {
  for (const char* option : {"--num-experts 8", "--moe-router-topk 2", "--expert-tensor-parallel-size 2"}) {
    const CommandResult result = run_command(app("pretrain") + " --num-layers 2 --hidden-size 64 " +
                                             "--num-attention-heads 4 --seq-length 64 " + option);
    EXPECT_EQ(result.code, 64) << option;
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("megalith-autoplan plans mixtures of experts"), std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace megalith
