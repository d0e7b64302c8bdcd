// Tests that megalith-autoplan obeys or refuses Megatron's options, and that its launch lines match the
// request.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

const char* const k7b =
    " --gpu h100 --world-size 16 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length "
    "4096 "
    "--vocab-size 32000 --global-batch-size 64 --top 1 ";

// megalith-autoplan obeys every Megatron option that affects memory or time, or refuses it with advice.
TEST(Autoplan, ObeysOrRefusesMegatronsOptions) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"--recompute-granularity selective --recompute-modules mlp",
       "--recompute-modules mlp is not planned; give"},
      {"--recompute-modules core_attn",
       "--recompute-modules core_attn needs --recompute-granularity selective"},
      {"--distribute-saved-activations", "--distribute-saved-activations is not supported; each tensor rank"},
      {"--cp-comm-type a2a", "--cp-comm-type is not supported; only a ring (p2p) of keys and values"},
      {"--hierarchical-context-parallel-sizes 2 2", "--hierarchical-context-parallel-sizes is not supported"},
      {"--microbatch-group-size-per-virtual-pipeline-stage 4",
       "--microbatch-group-size-per-virtual-pipeline-stage is not supported"},
      {"--use-tp-pp-dp-mapping", "--use-tp-pp-dp-mapping is not supported"},
      {"--standalone-embedding-stage", "--standalone-embedding-stage is not supported; give --account-for"},
      {"--optimizer-cpu-offload", "--optimizer-cpu-offload is not supported"},
      {"--no-masked-softmax-fusion", "--no-masked-softmax-fusion has no effect"},
      {"--attention-backend flash --attention-kernel torch", "set the same property; leave one of them out"},
      {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 8",
       "--recompute-num-layers 8 of --recompute-method uniform is not planned"},
      {"--recompute-granularity selective --recompute-method block", "R1: --recompute-method and"},
      {"--recompute-granularity selective --recompute-num-layers 2", "R1: --recompute-method and"},
      {"--recompute-method block --recompute-num-layers 2", "need --recompute-granularity full"},
      {"--data-parallel-sharding-strategy optim", "needs --use-megatron-fsdp"},
      {"--no-bf16", "--bf16 false: a device's plan is in 16 bits"},
      {"--bf16 false --fp8-format hybrid", "--bf16 false: a device's plan is in 16 bits"},
      {"--no-use-flash-attn --attention-kernel fused", "--use-flash-attn false keeps the scores, and"},
      {"--use_flash_attention 0 --attention-backend flash", "--use-flash-attn false keeps the scores, --att"},
      {"--transformer-impl local --attention-backend fused", "--transformer-impl local keeps the scores, --"},
      {"--use-flash-attn --attention-backend unfused", "contradict each other; leave one of them out"},
      {"--no-overlap-grad-reduce --overlap-param-gather",
       "O1: --overlap-param-gather needs --overlap-grad-reduce"},
      {"--pipeline-model-parallel-layout Et*16|m|L", "stage \"m\" is not planned; wanted E"}};
  for (const auto& [options, says] : kRefused) {
    const std::string quoted = test::replaced(std::string(options), "(\\S*[|]\\S*)", "'$1'");
    const CommandResult refused = run_command(app("autoplan") + k7b + quoted);
    EXPECT_EQ(refused.code, 64) << options;
    EXPECT_NE(refused.err.find(says), std::string::npos) << options << refused.err;
  }
  const auto planned = [](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + k7b + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    EXPECT_EQ(result.err.find("ignored"), std::string::npos) << result.err;
    const size_t at = result.out.find("options of plan 1\n  ");
    return at == std::string::npos ? "" : result.out.substr(at, result.out.find('\n', at + 20) - at) + ' ';
  };
  const std::string cut =
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 "
      "--num-layers-per-virtual-pipeline-stage 4 ";
  const std::pair<std::string, const char*> kObeyed[] = {
      {"--attention-backend unfused", " --attention-backend unfused "},
      {"--no-use-flash-attn", " --attention-backend unfused "},
      {"--use_flash_attention False", " --attention-backend unfused "},
      {"--transformer-impl local", " --attention-backend unfused "},
      {"--transformer-impl local --attention-backend auto", " --attention-backend unfused "},
      {"--no-bf16 --fp16", " --fp16 "},
      {"--attention-backend unfused --no-masked-softmax-fusion",
       " --attention-backend unfused --no-masked-softmax-fusion "},
      {cut + "--no-overlap-p2p-communication", " --no-overlap-p2p-communication "},
      {"--recompute-granularity selective --recompute-modules layernorm mlp_act",
       " --recompute-modules layernorm mlp_act "},
      {cut + "--recompute-granularity full --recompute-method block --recompute-num-layers 3",
       " --recompute-method block --recompute-num-layers 3 "},
      {cut + "--recompute-granularity full --recompute-method block --recompute-num-layers 4",
       " --recompute-method uniform --recompute-num-layers 1 "},  // 4 layers are a whole chunk
      {"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor",
       " --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format "
       "fsdp_dtensor "},
      {"--pipeline-model-parallel-layout 'Et*7|t*9|ttttttttt|t*7L'",
       " --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7 "},
      {"--tensor-model-parallel-size 1 --sequence-parallel", " --tensor-model-parallel-size 1 "}};  // S1: off
  for (const auto& [options, says] : kObeyed) {
    const std::string line = planned(options);
    EXPECT_NE(line.find(says), std::string::npos) << options << '\n' << line;
  }
  EXPECT_EQ(planned("--tensor-model-parallel-size 1 --sequence-parallel").find("--sequence-parallel"),
            std::string::npos);
}

// Tests the options of PaddleNLP's run_pretrain.py for the number of data-parallel ranks.
TEST(Autoplan, ObeysOrRefusesPaddleNlpsDegrees) {
  const auto plan = [](const std::string& options) { return run_command(app("autoplan") + k7b + options); };
  for (const int degree : {1, 2, 8}) {
    const CommandResult obeyed =
        plan("--json --sharding stage2 --sharding-parallel-degree " + std::to_string(degree));
    ASSERT_EQ(obeyed.code, 0) << obeyed.err;
    EXPECT_EQ(Json::parse(obeyed.out, "answer")["plans"].as_array().at(0)["data"].as_int(), degree);
  }
  EXPECT_EQ(plan("--data-parallel-degree 1 --sharding-parallel-degree -1").code, 0);
  const std::pair<const char*, const char*> kRefused[] = {
      {"--data-parallel-degree 2", "--data-parallel-degree 2 is not supported"},
      {"--sharding-parallel-degree 3",
       "--sharding-parallel-degree 3 * 1 ranks of a model are 3, which does not"},
      {"--sharding-parallel-degree 4 --data-parallel-size 2",
       "--sharding-parallel-degree 4 and --data-parallel-size 2 contradict each other"}};
  for (const auto& [options, says] : kRefused) {
    const CommandResult refused = plan(options);
    EXPECT_EQ(refused.code, 64) << options;
    EXPECT_NE(refused.err.find(says), std::string::npos) << options << refused.err;
  }
}

// In a batch job, but outside a step of srun, Slurm's variables describe ranks that do not exist. The planner
// ignores them and says so.
TEST(Autoplan, SaysThatABatchJobsTasksAreNotTaken) {
  const std::string without_world = test::replaced(std::string(k7b), "--world-size 16 ", "");
  const auto plan = [&](const std::string& variables) {
    return run_command(variables + app("autoplan") + without_world + "--recompute-granularity full --json");
  };
  const std::string slurm = "SLURM_NTASKS=16 SLURM_NTASKS_PER_NODE=8 ";
  const CommandResult batch = plan(slurm);
  EXPECT_NE(batch.err.find("SLURM_NTASKS=16 of the batch job is not used"), std::string::npos) << batch.err;
  EXPECT_NE(batch.err.find("give --world-size 16 --local-world-size 8\n"), std::string::npos) << batch.err;
  const CommandResult step = plan(slurm + "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 ");
  EXPECT_EQ(step.code, 0) << step.err;
  EXPECT_EQ(step.err.find("batch job"), std::string::npos) << step.err;
  EXPECT_EQ(plan("").err.find("SLURM"), std::string::npos);
}

// --grad-reduce-in-bf16 halves the memory for gradients. docs/planner.md: without a distributed optimizer a
// parameter takes 18 bytes, 4 of them for its gradient.
TEST(Autoplan, TakesGradientsOfSixteenBits) {
  const auto plan = [](const std::string& options) {
    const CommandResult result =
        run_command(app("autoplan") + k7b +
                    "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 "
                    "--sharding none --json " +
                    options);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["plans"].as_array().at(0);
  };
  const Json wide = plan(""), narrow = plan("--grad-reduce-in-bf16");
  const double four = wide["memory_bytes"]["gradients"].as_double();
  EXPECT_NEAR(narrow["memory_bytes"]["gradients"].as_double() / four, 0.5, 1e-5);  // the JSON has six digits
  EXPECT_NE(narrow["options"].as_string().find(" --grad-reduce-in-bf16"), std::string::npos);
  const CommandResult text = run_command(app("autoplan") + k7b + "--grad-reduce-in-bf16");
  EXPECT_NE(text.out.find("Megatron-LM only: this version's trainer has no option for gradients in 16 bits"),
            std::string::npos)
      << text.out;
}

// A parameter takes 12 bytes in the optimizer, for its master and both moments, of which 2 are saved.
TEST(Autoplan, PlansTheTypeOfOurTrainersFirstMoment) {
  // The layout is fixed: with the memory that a narrow moment leaves, another one is the fastest.
  const auto plan = [](const std::string& options) {
    return run_command(
        app("autoplan") + k7b +
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sharding none --json " + options);
  };
  const auto optimizer = [&](const std::string& options) {
    const CommandResult result = plan("--software megalith " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.out.find(options), std::string::npos) << result.out;  // the launch line repeats it
    const Json best = Json::parse(result.out, "answer")["plans"].as_array().at(0);
    return best["memory_bytes"]["optimizer"].as_double();
  };
  EXPECT_NEAR(optimizer("--exp-avg-dtype bf16") / optimizer(""), 10.0 / 12, 1e-3);
  const CommandResult refused = plan("--exp-avg-dtype bf16");
  EXPECT_EQ(refused.code, 64);
  EXPECT_NE(refused.err.find("--exp-avg-dtype bf16 is planned for --software megalith"), std::string::npos)
      << refused.err;
  const CommandResult twice = plan("--software megalith --software-features adam_8bit --exp-avg-dtype bf16");
  EXPECT_EQ(twice.code, 64);
  EXPECT_NE(twice.err.find("whose moments have 8 bits; leave one of them out"), std::string::npos)
      << twice.err;
}

// Lines and jobs are those of Megatron-LM and of our trainer, so a plan for another program has none.
TEST(Autoplan, PlansForOtherPrograms) {
  const CommandResult text = run_command(app("autoplan") + k7b + "--software torchtitan");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* word :
       {", bf16, torchtitan\n", " torchtitan\n", "plan 1 is for torchtitan (torchtitan): "})
    EXPECT_NE(text.out.find(word), std::string::npos) << word << '\n' << text.out;
  EXPECT_EQ(text.out.find("torchrun"), std::string::npos) << text.out;
  const auto seconds = [](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + k7b + options + " --json");
    EXPECT_EQ(result.code, 0) << options << result.err;
    const Json answer = Json::parse(result.out, "answer");
    EXPECT_EQ(answer["software"].as_string(), options.substr(std::string("--software ").size(), 10));
    EXPECT_EQ(answer["launch"].as_object().size(), 0U);
    return answer["plans"].as_array().at(0)["step_seconds"].as_double();
  };
  EXPECT_LT(seconds("--software torchtitan --software-features compile ce_fusion"),
            seconds("--software torchtitan"));
  // As an option of Megatron-LM's runs; one that says the same as the plan is taken.
  for (const auto& [graphs, code] : {std::pair("--cuda-graph-impl local", 64),
                                     {"--cuda-graph-impl none", 0},
                                     {"--software-features cuda_graphs --cuda-graph-impl local", 0},
                                     {"--software megalith --cuda-graph-impl local", 0}}) {
    const CommandResult asked = run_command(app("autoplan") + k7b + graphs);
    EXPECT_EQ(asked.code, code) << graphs << asked.all();
    EXPECT_EQ(
        asked.err.find("--cuda-graph-impl local is not planned; give --software-features cuda_graphs") !=
            std::string::npos,
        code == 64)
        << asked.err;
  }
  const CommandResult told = run_command(app("autoplan") + k7b + "--software-features cuda_graphs zbv");
  EXPECT_NE(told.err.find("the times are those with cuda_graphs, zbv, which no line names"),
            std::string::npos)
      << told.err;
  EXPECT_EQ(run_command(app("autoplan") + k7b).err.find("which no line names"), std::string::npos);
  const std::pair<const char*, const char*> kRefused[] = {
      {"--software torchtitan --emit slurm", "--emit writes jobs of Megatron-LM and megalith-pretrain"},
      {"--software torchtitan --simulate 16", "--simulate simulates a step of this version's trainer, not"},
      {"--software pytorch", "--software"},
      {"--software-features eager", "--software-features"},
      {"--software-features dualpipe compile zbv",
       "--software-features dualpipe zbv: a pipeline has one schedule; give one of them"},
      {"--recompute-granularity selective --recompute-modules products",
       "--recompute-modules products is what torchtitan recomputes, not --software megatron"},
      {"--software-features cuda_graphs --recompute-granularity full", "G1"},
      {"--fit-probability 0.3", "--fit-probability 0.3"}};
  for (const auto& [options, says] : kRefused) {
    const CommandResult refused = run_command(app("autoplan") + k7b + options);
    EXPECT_EQ(refused.code, 64) << options << refused.out;
    EXPECT_NE(refused.err.find(says), std::string::npos) << options << '\n' << refused.err;
  }
}

TEST(Autoplan, PlansOnlyItsTrainerForThisProcessor) {
  const std::string small =
      " --gpu local --global-batch-size 8 --num-layers 2 --hidden-size 64 --num-attention-heads 2 "
      "--seq-length 64 --vocab-size 512 ";
  const CommandResult refused = run_command(app("autoplan") + small + "--software nemo");
  EXPECT_EQ(refused.code, 64) << refused.out;
  EXPECT_NE(refused.err.find("--software nemo: only megalith is planned for this machine's processor"),
            std::string::npos)
      << refused.err;
  const CommandResult features = run_command(app("autoplan") + small + "--software-features zbv");
  EXPECT_EQ(features.code, 64) << features.out;
  EXPECT_NE(features.err.find("--software-features is not planned for this machine's processor"),
            std::string::npos)
      << features.err;
  // Our trainer has no ZeRO-3, so none of the plans for it is of that kind.
  const CommandResult planned =
      run_command(app("autoplan") + small + "--world-size 4 --software megalith --top 100 --json");
  ASSERT_EQ(planned.code, 0) << planned.err;
  const Json answer = Json::parse(planned.out, "answer");
  for (const Json& plan : answer["plans"].as_array()) {
    EXPECT_LT(plan["zero_stage"].as_int(), 3);
    EXPECT_FALSE(plan["megatron_only"].as_bool());
  }
}

// What is asked of every plan is what every plan has.
TEST(Autoplan, AsksForAProbabilityThatPlansFit) {
  const auto plans = [](const std::string& options) {
    const std::string all = test::replaced(std::string(k7b), "--top 1 ", "--top 20 ");
    const CommandResult result = run_command(app("autoplan") + all + "--json " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["plans"];
  };
  const Json sure = plans(""), as_predicted = plans("--fit-probability 0.5 --device-memory-gb 40");
  for (const Json& plan : sure.as_array()) EXPECT_GE(plan["fit_probability"].as_double(), 0.95 - 1e-6);
  double least = 1;
  for (const Json& plan : as_predicted.as_array())
    least = std::min(least, plan["fit_probability"].as_double());
  EXPECT_GE(least, 0.5 - 1e-6);
  EXPECT_LT(least, 0.95);
}

// A log already gives the layout and the model's shape, so the planner must not ask for them
// (docs/planner.md: "cut and shape included").
TEST(Autoplan, AsksForNothingThatALogHas) {
  const test::TempDir folder;
  std::string log;
  for (const auto& [name, value] : {std::pair{"num_layers", "32"},
                                    {"hidden_size", "4096"},
                                    {"num_attention_heads", "32"},
                                    {"seq_length", "4096"},
                                    {"global_batch_size", "64"},
                                    {"micro_batch_size", "1"},
                                    {"tensor_model_parallel_size", "8"},
                                    {"padded_vocab_size", "32768"},
                                    {"world_size", "16"}})
    log += std::string("  ") + name + " ............. " + value + '\n';
  for (int step = 1; step < 6; ++step)
    log += " iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | learning rate: 1.0E-04 |\n";
  write_file(folder / "run.log", log);
  const CommandResult result =
      run_command(app("autoplan") + " --gpu h100 --vocab-size 32000 --verify-log " + (folder / "run.log"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("measured 9.000 s"), std::string::npos) << result.out;
}

// Given a command line that it printed, the planner plans the same run again: on one GPU, which our trainer
// trains on, too.
TEST(Autoplan, PrintsLinesOfTheRunThatWasAskedFor) {
  const std::string model =
      " --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --vocab-size 32000 "
      "--rotary-base 500000 --position-embedding-type rope --norm-epsilon 1e-6 --hidden-dropout 0 "
      "--make-vocab-size-divisible-by 64 --no-bias-gelu-fusion --add-qkv-bias --disable-bias-linear ";
  const std::string run =
      "--lr 3e-4 --min-lr 3e-5 --train-iters 500 --data-path 0.3 \"/data/it's one\" 0.7 /data/two "
      "--no-load-optim --mock-data --save /ckpt --log-json figures.jsonl --tokenizer-type NullTokenizer "
      "--ddp-num-buckets 3 --deterministic-collectives --distributed-timeout-minutes 3 "
      "--distributed-timeout-seconds-after-init 40 ";
  const auto lines = [](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + options + "--top 1 --explain");
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  const std::string first = lines(
      " --world-size 1 --global-batch-size 32 --gpu h100 --tensor-model-parallel-size 1 "
      "--pipeline-model-parallel-size 1 --context-parallel-size 1 --use-distributed-optimizer" +
      model + run);
  const auto line_of = [](const std::string& text, const std::string& program) {
    const test::Pattern::Match found =
        test::Pattern("\n  (\\S+=1 )?torchrun [^\n]*" + program + "([^\n]*)").first_in(text);
    EXPECT_FALSE(found.empty()) << text;
    return found.empty() ? "" : found[2];
  };
  const std::string megatron = line_of(first, "pretrain_gpt.py"), ours = line_of(first, "megalith-pretrain");
  for (const std::string& line : {megatron, ours}) {
    EXPECT_NE(line.find(" --lr 3e-04 --min-lr 3e-05 "), std::string::npos) << line;
    EXPECT_NE(line.find(" --data-path 0.3 \"/data/it's one\" 0.7 /data/two "), std::string::npos) << line;
    EXPECT_NE(line.find(" --no-load-optim"), std::string::npos) << line;
    EXPECT_NE(line.find(" --mock-data"), std::string::npos) << line;
    EXPECT_NE(line.find(" --ddp-num-buckets 3"), std::string::npos) << line;
    EXPECT_NE(line.find(" --distributed-timeout-minutes 3 --distributed-timeout-seconds-after-init 40"),
              std::string::npos)
        << line;
    const std::string again = lines(" --world-size 1 --gpu h100" + line + ' ');
    EXPECT_EQ(line_of(again, "pretrain_gpt.py"), megatron);
    EXPECT_NE(first.find("--data-path 0.3 \"/data/it'\\''s one\""), std::string::npos) << "srun " << first;
  }
  EXPECT_EQ(megatron.find("--log-json"), std::string::npos) << megatron;
  EXPECT_EQ(megatron.find("--deterministic-collectives"), std::string::npos) << megatron;
  EXPECT_NE(ours.find(" --deterministic-collectives"), std::string::npos) << ours;
  EXPECT_NE(ours.find("--log-json figures.jsonl"), std::string::npos) << ours;
  const std::string budgets = lines(" --world-size 1 --global-batch-size 32 --gpu h100" + model +
                                    "--lr 3e-4 --train-iters 500 --data-path a tokens=5e9 b epochs=2 ");
  EXPECT_EQ(line_of(budgets, "pretrain_gpt.py").find("--data-path"), std::string::npos)
      << "Megatron has no budgets: " << budgets;
  EXPECT_NE(line_of(budgets, "megalith-pretrain").find(" --data-path a tokens=5e9 b epochs=2"),
            std::string::npos)
      << budgets;
}

}  // namespace
}  // namespace megalith
