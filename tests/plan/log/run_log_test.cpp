#include "libcore/plan/log/run_log.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/io/files/file.h"
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

TEST(MegatronLog, ReadsTheLayoutTheTimeAndTheMemory) {
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

/// The log of megatron_log() with additional arguments.
MegatronLog log_with(const std::string& arguments, const std::string& devices = "8") {
  std::string text = megatron_log("2500.0");
  text.insert(text.find("  world_size"), arguments);
  text.replace(text.find("8\n[Rank"), 1, devices);
  return parse_run_log(text, "run.log");
}

TEST(MegatronLog, ReadsTheWholeLayoutAndShape) {
  const auto run = [](const std::string& arguments) {
    PlanProblem base = gpt_22b(64);
    base.machine.device = find_accelerator("H100");  // a device that supports 8 bits
    return logged_run(log_with(arguments), base, "run.log");
  };
  const LoggedRun fsdp =
      run("  use_megatron_fsdp ............................... True\n"
          "  data_parallel_sharding_strategy ................. optim_grads_params\n");
  EXPECT_EQ(fsdp.candidate.sharding, Sharding::kParameters);
  const LoggedRun uneven = run("  decoder_first_pipeline_num_layers ............... 22\n");
  EXPECT_EQ(stage_layers(uneven.problem, uneven.candidate, 0), 22);
  EXPECT_EQ(stage_layers(uneven.problem, uneven.candidate, 1), 26);
  EXPECT_EQ(run("  virtual_pipeline_model_parallel_size ............ 4\n").candidate.chunks, 4);
  EXPECT_EQ(run("  fp8 ............................................. hybrid\n"
                "  fp8_recipe ...................................... delayed\n")
                .problem.precision,
            Precision::kFp8);
  EXPECT_EQ(run("  bf16 ............................................ False\n"
                "  fp16 ............................................ False\n")
                .problem.precision,
            Precision::kFloat32);
  const ModelShape m = run("  untie_embeddings_and_output_weights ............. True\n"
                           "  normalization ................................... RMSNorm\n"
                           "  position_embedding_type ......................... rope\n"
                           "  add_bias_linear ................................. False\n"
                           "  add_qkv_bias .................................... False\n"
                           "  attention_dropout ............................... 0.0\n"
                           "  hidden_dropout .................................. 0.0\n")
                           .problem.model;
  EXPECT_TRUE(m.untied_head);
  EXPECT_EQ(m.norm, Normalization::kRmsNorm);
  EXPECT_EQ(m.position, PositionEmbedding::kRope);
  EXPECT_FALSE(m.has_qkv_bias());
  EXPECT_EQ(m.attention_dropout + m.hidden_dropout, 0);
  EXPECT_EQ(run("  grad_reduce_in_bf16 ............................. True\n").problem.software.gradient_bytes,
            2);
  EXPECT_EQ(run("  attention_backend ............................... AttnBackend.unfused\n")
                .problem.software.attention,
            AttentionKernel::kFusedSoftmax);
}

std::string line_of(const std::string& name, const std::string& value) {
  return "  " + name + " ........ " + value + '\n';
}

TEST(MegatronLog, RefusesWhatIsNotPricedByName) {
  const std::string narrow = line_of("fp8", "hybrid"), context = line_of("context_parallel_size", "2"),
                    chunks = line_of("virtual_pipeline_model_parallel_size", "4");
  for (const auto& [name, value, beside] : {std::tuple{"optimizer_cpu_offload", "True", std::string()},
                                            {"pipeline_model_parallel_layout", "Et*12|t*12|t*12|t*12L", ""},
                                            {"use_torch_fsdp2", "True", ""},
                                            {"distribute_saved_activations", "True", ""},
                                            {"use_precision_aware_optimizer", "True", ""},
                                            {"main_grads_dtype", "torch.bfloat16", ""},
                                            {"exp_avg_dtype", "torch.bfloat16", ""},
                                            {"optimizer", "sgd", ""},
                                            {"num_distributed_optimizer_instances", "2", ""},
                                            {"use_tp_pp_dp_mapping", "True", ""},
                                            {"cp_comm_type", "['a2a']", context},
                                            {"cpu_offloading", "True", ""},
                                            {"fp8_param_gather", "True", narrow},
                                            {"window_size", "(1024, 0)", ""},
                                            {"rampup_batch_size", "['16', '16', '1000']", ""},
                                            {"microbatch_group_size_per_vp_stage", "8", chunks}}) {
    const MegatronLog log = log_with(line_of(name, value) + beside);
    try {
      PlanProblem base = gpt_22b(64);
      base.machine.device = find_accelerator("H100");
      logged_run(log, base, "run.log");
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("run.log: ") + name + " is \"" + value + '"'),
                std::string::npos)
          << error.what();
    }
  }
}

/// Whether a log with this argument is refused with a message that names it.
bool is_refused(const std::string& name, const std::string& value) {
  const std::string beside =
      line_of("fp8", "hybrid") + line_of("context_parallel_size", "2") + line_of("num_experts", "8") +
      line_of("moe_router_topk", "2") + line_of("moe_ffn_hidden_size", "2048") +
      line_of("expert_tensor_parallel_size", "1") + line_of("virtual_pipeline_model_parallel_size", "4");
  try {
    PlanProblem base = gpt_22b(64);
    base.machine.device = find_accelerator("B200");
    logged_run(log_with(beside + line_of(name, value), "16"), base, "run.log");
  } catch (const Error& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("run.log: " + name + " is ")) << error.what();
    return true;
  }
  return false;
}

// An argument in a log has the same fate as the option of that name on the planner's command line and in its
// files (tests/apps/fates_test.cpp).
TEST(MegatronLog, GivesEachArgumentTheFateOfItsOption) {
  for (const ForeignOption& option : foreign_options()) {
    if ((option.programs & (kAutoplan | kLog)) == 0) continue;
    std::string name = json_key(option.name);
    if (name.ends_with('*')) name.replace(name.size() - 1, 1, "unheard_of");
    EXPECT_EQ(is_refused(name, "7"), !option.remedy.empty()) << name;
    EXPECT_FALSE(is_refused(name, "None")) << name;
    for (const std::string& plain : split(option.plain, '|'))
      EXPECT_TRUE(plain.empty() || !is_refused(name, plain)) << name << ' ' << plain;
  }
}

TEST(MegatronLog, ReadsTheTableOfStages) {
  const auto layers = [](const std::string& layout) {
    return logged_run(log_with(line_of("pipeline_model_parallel_layout", layout)), gpt_22b(64), "run.log")
        .problem.stage_layers;
  };
  EXPECT_EQ(layers("Et*22|t*26L"), (std::vector<int>{22, 26}));
  EXPECT_EQ(layers("None"), std::vector<int>());
  EXPECT_THROW(layers("Et*22|mL"), Error);
  EXPECT_THROW(layers("Et*22|t*22L"), Error);
}

// Arguments that have no effect in the run or repeat others are accepted, as on the command line
// (tests/apps/fates_test.cpp).
TEST(MegatronLog, TakesWhatTheRunLifts) {
  const auto taken = [](const std::string& arguments) {
    try {
      logged_run(log_with(arguments), gpt_22b(64), "run.log");
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(taken(line_of("moe_pad_expert_input_to_capacity", "True")));
  EXPECT_TRUE(taken(line_of("encoder_num_layers", "48")));
  EXPECT_FALSE(taken(line_of("encoder_num_layers", "24")));
  const std::string group = "microbatch_group_size_per_vp_stage",
                    chunks = line_of("virtual_pipeline_model_parallel_size", "4");
  EXPECT_TRUE(taken(line_of(group, "8")));
  EXPECT_TRUE(taken(chunks + line_of(group, "2")));
  EXPECT_FALSE(taken(chunks + line_of(group, "8")));
}

// The arguments in every log of megatron/training/arguments.py, with their default values.
TEST(MegatronLog, TakesMegatronsDefaults) {
  std::string defaults;
  for (const auto& [name, value] : {std::pair{"optimizer", "adam"},
                                    {"main_grads_dtype", "torch.float32"},
                                    {"exp_avg_dtype", "torch.float32"},
                                    {"num_distributed_optimizer_instances", "1"},
                                    {"cp_comm_type", "['p2p']"},
                                    {"cpu_offloading_num_layers", "0"},
                                    {"cuda_graph_impl", "none"},
                                    {"encoder_tensor_model_parallel_size", "0"},
                                    {"fp8_wgrad", "True"},
                                    {"fp8_recipe", "delayed"},
                                    {"window_size", "None"},
                                    {"use_tp_pp_dp_mapping", "False"},
                                    {"moe_router_load_balancing_type", "aux_loss"},
                                    {"moe_token_dispatcher_type", "allgather"},
                                    {"moe_aux_loss_coeff", "0.0"},
                                    {"kv_lora_rank", "32"}})
    defaults += line_of(name, value);
  const LoggedRun plain = logged_run(log_with(""), gpt_22b(64), "run.log"),
                  named = logged_run(log_with(defaults), gpt_22b(64), "run.log");
  EXPECT_EQ(make_plan(named.problem, named.candidate).time.total(),
            make_plan(plain.problem, plain.candidate).time.total());
}

// tests/dialects/megatron/goldens/megatron_options.json: every option of core 0.12 with its default.
TEST(MegatronLog, TakesTheDefaultOfEachOption) {
  const Json options = Json::load(test::test_data("dialects/megatron/goldens/megatron_options.json"));
  for (const Json& option : options.as_array()) {
    const std::string name = json_key(option["option"].as_string());
    const Json& value = option["default"];
    if (value.is_null() || !logged_option(name)) continue;
    EXPECT_FALSE(is_refused(name, value.is_string() ? value.as_string() : value.dump())) << name;
  }
}

TEST(MegatronLog, RefusesAFormatThatTheDeviceHasNot) {
  const auto refusal = [](const std::string& arguments, const char* device) -> std::string {
    PlanProblem base = gpt_22b(64);
    base.machine.device = find_accelerator(device);
    try {
      logged_run(log_with(arguments), base, "run.log");
      return "taken";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const std::string blocks = line_of("fp8", "e4m3") + line_of("fp8_recipe", "mxfp8");
  EXPECT_EQ(refusal(blocks, "h100")
                .find("run.log: H100-SXM-80GB has no products of 8-bit numbers that are scaled in blocks"),
            0u)
      << refusal(blocks, "h100");
  EXPECT_EQ(refusal(blocks, "b200"), "taken");
  EXPECT_NE(refusal(line_of("fp4", "e2m1"), "h100").find("has no products in 4 bits"), std::string::npos);
  EXPECT_NE(refusal(line_of("fp8", "hybrid"), "a100-80").find("has no products in 8 bits"),
            std::string::npos);
  EXPECT_NE(refusal(line_of("bf16", "True"), "V100-SXM2-32GB").find("has no products in bf16"),
            std::string::npos);
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
