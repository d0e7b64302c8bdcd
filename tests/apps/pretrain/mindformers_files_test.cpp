// Runs the 17 run files of MindFormers for GPT-2 and LLaMA (configs/gpt2, configs/llama, configs/llama2; of
// v1.2.0, run_llama2_7b.yaml of v1.0.2). The test has their keys, with the values that decide what happens;
// models, lengths and numbers of ranks are smaller. What a file is refused with must work when it is
// followed.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

enum class Family { kGpt2, kLlama };

/// What differs between the files.
struct Published {
  const char* name;
  Family family;
  const char* run_mode = "train";
  const char* load = "";        // load_checkpoint
  const char* checkpoint = "";  // model_config.checkpoint_name_or_path
  bool parallel = true;         // use_parallel
  int data = 1, tensor = 1, pipeline = 1, micro_batches = 1;
  const char* dtype = "float16";
  std::string model = {};  // lines of model_config that few files have
  std::string more = {};   // lines outside of the groups that few files have
};

std::string model_of(const Published& file) {
  const std::string common = concat(
      "    seq_length: 16\n    hidden_size: 32\n    num_layers: 4\n    num_heads: 4\n    vocab_size: 768\n"
      "    compute_dtype: \"",
      file.dtype,
      "\"\n    layernorm_compute_type: \"float32\"\n    softmax_compute_type: \"float16\"\n"
      "    param_init_type: \"float16\"\n    use_past: False\n    use_flash_attention: True\n"
      "    eos_token_id: 0\n    repetition_penalty: 1\n    max_decode_length: 16\n    top_k: 3\n"
      "    top_p: 1\n    do_sample: False\n    checkpoint_name_or_path: \"",
      file.checkpoint, "\"\n", file.model);
  if (file.family == Family::kGpt2)
    return "model:\n  model_config:\n    type: GPT2Config\n    expand_ratio: 4\n"
           "    hidden_act: \"fast_gelu\"\n    use_prompt_flash_attention: False\n"
           "    hidden_dropout_rate: 0.1\n    attention_dropout_rate: 0.1\n" +
           common + "  arch:\n    type: GPT2LMHeadModel\n";
  return "model:\n  model_config:\n    type: LlamaConfig\n    batch_size: 1\n    multiple_of: 32\n"
         "    rms_norm_eps: 1.0e-5\n    bos_token_id: 0\n    pad_token_id: 0\n    ignore_token_id: -100\n"
         "    rotary_dtype: \"float16\"\n    extend_method: \"None\"\n    offset: 0\n" +
         common + "  arch:\n    type: LlamaForCausalLM\n";
}

std::string optimizer_of(Family family) {
  if (family == Family::kGpt2)
    return "optimizer:\n  type: FusedAdamWeightDecay\n  beta1: 0.9\n  beta2: 0.95\n  eps: 0.00000001\n"
           "  weight_decay: 0.1\nlr_schedule:\n  type: polynomial\n  learning_rate: 0.001\n  lr_end: 0.0001\n"
           "  warmup_steps: 0\n  total_steps: -1\nlr_scale: False\nlr_scale_factor: 256\n"
           "moe_config:\n  expert_num: 1\n  capacity_factor: 1.05\n  aux_loss_factor: 0.05\n"
           "  num_experts_chosen: 1\n";
  return "optimizer:\n  type: FP32StateAdamWeightDecay\n  beta1: 0.9\n  beta2: 0.95\n  eps: 1.e-8\n"
         "  learning_rate: 1.e-3\nlr_schedule:\n  type: CosineWithWarmUpLR\n  learning_rate: 1.e-3\n"
         "  lr_end: 0\n  warmup_ratio: 0.03\n  total_steps: -1\nlr_scale_factor: 256\n";
}

std::string parallel_of(const Published& file) {
  const std::string sizes =
      file.data == 0  // found automatically
          ? std::string("  mem_coeff: 0.1\n")
          : concat("  data_parallel: ", file.data, "\n  model_parallel: ", file.tensor, "\n");
  return concat("use_parallel: ", file.parallel ? "True" : "False", "\nparallel:\n  parallel_mode: ",
                !file.parallel   ? 0
                : file.data == 0 ? 2
                                 : 1,
                "\n  gradients_mean: False\n  full_batch: True\n  search_mode: \"sharding_propagation\"\n"
                "  enable_parallel_optimizer: ",
                file.parallel ? "True" : "False",
                "\n  parallel_optimizer_config:\n    gradient_accumulation_shard: False\n"
                "parallel_config:\n",
                sizes, "  pipeline_stage: ", file.pipeline,
                "\n  use_seq_parallel: False\n  micro_batch_num: ", file.micro_batches,
                "\n  vocab_emb_dp: True\n  gradient_aggregation_group: 4\nmicro_batch_interleave_num: 1\n"
                "recompute_config:\n  recompute: True\n  select_recompute: False\n"
                "  parallel_optimizer_comm_recompute: False\n  mp_comm_recompute: True\n"
                "  recompute_slice_activation: True\n");
}

std::string yaml(const Published& file) {
  return concat(
      "seed: 0\nrun_mode: '", file.run_mode, "'\noutput_dir: './output'\nload_checkpoint: '", file.load,
      "'\nsrc_strategy_path_or_dir: ''\nauto_trans_ckpt: False\nonly_save_strategy: False\n"
      "resume_training: False\ncontext:\n  mode: 0\n  device_target: \"Ascend\"\n"
      "  max_device_memory: \"30GB\"\n  device_id: 0\nrunner_config:\n  epochs: 1\n  batch_size: 1\n"
      "  sink_mode: True\n  sink_size: 2\nrunner_wrapper:\n  type: MFTrainOneStepCell\n  scale_sense:\n"
      "    type: DynamicLossScaleUpdateCell\n    loss_scale_value: 65536\n    scale_factor: 2\n"
      "    scale_window: 1000\n  use_clip_grad: True\n",
      parallel_of(file),
      "train_dataset: &train_dataset\n  data_loader:\n    type: MindDataset\n    dataset_dir: \"\"\n"
      "    shuffle: ",
      file.model.find("prefixtuning") == std::string::npos ? "True" : "False",
      "\n  input_columns: [\"input_ids\"]\n  num_parallel_workers: 8\n  drop_remainder: True\n"
      "  batch_size: 2\ntrain_dataset_task:\n  type: CausalLanguageModelDataset\n"
      "  dataset_config: *train_dataset\ndo_eval: False\ncallbacks:\n  - type: MFLossMonitor\n"
      "  - type: CheckpointMonitor\n    prefix: \"gpt\"\n    save_checkpoint_steps: 500\n"
      "    integrated_save: False\n  - type: ObsMonitor\neval_callbacks:\n  - type: ObsMonitor\nmetric:\n"
      "  type: PerplexityMetric\ntrainer:\n  type: CausalLanguageModelingTrainer\n  model_name: 'gpt2'\n"
      "auto_tune: False\nprofile: False\nlayer_scale: False\nlayer_decay: 0.65\nremote_save_url: \"none\"\n",
      optimizer_of(file.family), model_of(file), file.more);
}

const std::string kFactor = "    scaling_factor: 1.0\n";
const std::string kNoSteps = "eval_step_interval: -1\neval_epoch_interval: 50\n";

/// Files that pretrain, from random weights or those of a checkpoint.
const Published kTraining[] = {
    {.name = "pretrain_gpt2_13b_fp16", .family = Family::kGpt2, .data = 2, .tensor = 2},
    {.name = "run_gpt2", .family = Family::kGpt2, .checkpoint = "gpt2", .parallel = false},
    {.name = "run_gpt2_13b",
     .family = Family::kGpt2,
     .data = 2,
     .tensor = 2,
     .model = "    max_position_embeddings: 16\n"},
    {.name = "run_gpt2_52b", .family = Family::kGpt2, .data = 2, .pipeline = 2, .micro_batches = 2},
    {.name = "run_gpt2_xl", .family = Family::kGpt2, .checkpoint = "gpt2_xl", .data = 2},
    {.name = "finetune_llama2_7b",
     .family = Family::kLlama,
     .run_mode = "finetune",
     .load = "{path}/llama2_7b.ckpt",
     .checkpoint = "llama2_7b",
     .data = 2,
     .dtype = "bfloat16",
     .model = kFactor},
    {.name = "pretrain_llama2_70b",
     .family = Family::kLlama,
     .tensor = 2,
     .pipeline = 2,
     .micro_batches = 2,
     .model = kFactor + "    n_kv_heads: 2\n    ffn_dim_multiplier: 1.3\n    fine_grain_interleave: 2\n"
                        "    qkv_concat: False\n",
     .more = kNoSteps},
    {.name = "pretrain_llama2_7b",
     .family = Family::kLlama,
     .checkpoint = "llama2_7b",
     .data = 2,
     .model = kFactor},
    {.name = "run_llama2_7b",
     .family = Family::kLlama,
     .checkpoint = "llama2_7b",
     .tensor = 2,
     .model = kFactor + "    max_position_embedding: 16\n",
     .more = kNoSteps},
    {.name = "run_llama_7b",
     .family = Family::kLlama,
     .checkpoint = "llama_7b",
     .pipeline = 2,
     .micro_batches = 2,
     .model = "    max_position_embedding: 16\n"},
};

/// A folder with a dataset, records, a model of each family below "models", and the file that a test is
/// about: run.yaml.
class MindFormersFiles : public testing::Test {
 protected:
  MindFormersFiles() {
    for (const char* family : {"gpt2", "llama"}) {
      const std::string folder = dir_ / concat("models/", family);
      fs::create_directories(dir_ / "models");
      fs::copy(test_data(concat("parity/goldens/generate-", family)), folder);
      fs::copy(test_data("text/goldens/trained/tokenizer.json"), folder);
    }
    std::string corpus, records;
    for (int i = 0; i < 60; ++i) corpus += concat("{\"text\": \"the harbour ", i * i, " and the sea\"}\n");
    for (int i = 0; i < 8; ++i) records += concat("{\"src\": \"", i, " is\", \"tgt\": \" ", i % 3, "\"}\n");
    write_file(dir_ / "corpus.jsonl", corpus);
    fs::create_directory(dir_ / "data");
    write_file(dir_ / "data/train.json", records);
    EXPECT_EQ(run("megalith-preprocess --input corpus.jsonl --output-prefix corpus --append-eod "
                  "--tokenizer-model models/llama")
                  .code,
              0);
  }
  CommandResult run(const std::string& command) const {
    return run_command(concat("cd ", dir_.path().string(),
                              " && export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive PATH=",
                              fs::path(app("pretrain")).parent_path().string(), ":$PATH && ", command));
  }
  void write(const std::string& text) const { write_file(dir_ / "run.yaml", text); }
  CommandResult train(const std::string& more) const {
    fs::remove_all(dir_ / "output");
    return run("megalith-pretrain --config run.yaml --data-path corpus_text_document --train-iters 2 " +
               more);
  }
  /// Expects two steps with a line each, as MFLossMonitor prints them, and a checkpoint.
  void expect_trained(const Published& file, const std::string& more = {}) const {
    const int ranks = std::max(file.data, 1) * file.tensor * file.pipeline;
    const CommandResult result = train(concat("--nproc ", ranks, ' ', more));
    EXPECT_EQ(result.code, 0) << file.name << result.all();
    for (const char* step : {"1", "2"})
      EXPECT_TRUE(Pattern(concat("iteration +", step, "/ +2 .*lm loss: [0-9]")).is_in(result.out))
          << file.name << result.all();
    EXPECT_TRUE(fs::exists(dir_ / "output/iter_0000002")) << file.name;
  }
  /// Expects that megalith-pretrain does not train the file, and says `remedy`.
  void expect_refused(const std::string& name, int code, const std::string& remedy) const {
    const CommandResult result = train("");
    EXPECT_EQ(result.code, code) << name << result.all();
    EXPECT_NE(result.err.find(remedy), std::string::npos) << name << result.all();
  }
  TempDir dir_;
};

TEST_F(MindFormersFiles, Train) {
  for (const Published& file : kTraining) {
    write(yaml(file));
    const std::string missing = *file.load ? file.load : file.checkpoint;
    if (!missing.empty()) {
      const int ranks = file.data * file.tensor * file.pipeline;
      const CommandResult result = train(concat("--nproc ", ranks));
      EXPECT_EQ(result.code, 66) << file.name << result.all();
      EXPECT_NE(
          result.err.find(concat(missing,
                                 " is not there: it names no checkpoint; give the folder of one on this "
                                 "machine")),
          std::string::npos)
          << file.name << result.all();
      EXPECT_NE(result.err.find("or leave it out to begin with random values"), std::string::npos)
          << result.err;
      Published random = file;
      random.load = random.checkpoint = "";
      write(yaml(random));
    }
    expect_trained(file);
  }
}

TEST_F(MindFormersFiles, TuneAdapters) {
  const std::string lora =
      "    pet_config:\n      pet_type: lora\n      lora_rank: 4\n      lora_alpha: 8\n"
      "      lora_dropout: 0.1\n      target_modules: ";
  const Published gpt2{.name = "run_gpt2_lora",
                       .family = Family::kGpt2,
                       .run_mode = "finetune",
                       .load = "gpt2",
                       .checkpoint = "gpt2_lora",
                       .parallel = false,
                       .model = lora + "'.*dense1.*|.*dense3.*'\n"};
  Published small = gpt2;
  small.name = "finetune_gpt2_small_lora_fp16";
  const Published llama{.name = "lora_llama2_7b",
                        .family = Family::kLlama,
                        .run_mode = "finetune",
                        .data = 2,
                        .micro_batches = 2,
                        .model = lora + "'.*wq|.*wk|.*wv|.*wo'\n"};
  for (const Published& file : {gpt2, small, llama}) {
    write(yaml(file));
    expect_refused(
        file.name, 64,
        "megalith-finetune --config FILE trains adapters of LoRA, with --model, --data and --output-dir");
    const CommandResult tuned = run(concat("megalith-finetune --config run.yaml --model models/",
                                           file.family == Family::kGpt2 ? "gpt2" : "llama",
                                           " --data data --output-dir ", file.name, " --nproc ", file.data));
    EXPECT_EQ(tuned.code, 0) << file.name << tuned.all();
    EXPECT_NE(tuned.all().find("--output-dir on the command line comes before --save ./output"),
              std::string::npos)
        << tuned.all();
    EXPECT_TRUE(fs::exists(dir_ / concat(file.name, "/adapter_model.safetensors"))) << file.name;
    EXPECT_FALSE(fs::exists(dir_ / "output"));
  }
}

// MindFormers makes keys and values by a projection, which is refused.
TEST_F(MindFormersFiles, TuneAPrefixWithoutAProjection) {
  Published file{.name = "finetune_llama2_7b_prefixtuning",
                 .family = Family::kLlama,
                 .run_mode = "finetune",
                 .load = "/llama_7b.ckpt",
                 .checkpoint = "llama2_7b",
                 .data = 2,
                 .dtype = "bfloat16",
                 .model = kFactor +
                          "    pet_config:\n      pet_type: prefixtuning\n      prefix_token_num: 4\n"
                          "      mid_dim: 512\n      dropout_rate: 0.01\n"};
  write(yaml(file));
  const std::string remedy =
      "remove pet_config, and give megalith-finetune --config FILE also --prefix-tuning, and "
      "--num-prefix-tokens with its prefix_token_num";
  expect_refused(file.name, 64, remedy);
  const std::string command =
      "megalith-finetune --config run.yaml --model models/llama --data data --output-dir prefix --nproc 2 ";
  const CommandResult refused = run(command);
  EXPECT_EQ(refused.code, 64) << refused.all();
  for (const std::string& part :
       {remedy, std::string("shuffle is \"False\", which is not supported; set it to True")})
    EXPECT_NE(refused.err.find(part), std::string::npos) << part << refused.all();
  file.model = kFactor;  // without pet_config, and with shuffle True
  write(yaml(file));
  const CommandResult tuned = run(command + "--prefix-tuning --num-prefix-tokens 4");
  EXPECT_EQ(tuned.code, 0) << tuned.all();
  EXPECT_TRUE(fs::exists(dir_ / "prefix/adapter_model.safetensors"));
}

// parallel_mode 2 lets MindSpore find the layout.
TEST_F(MindFormersFiles, PlanAndTrainTheAutomaticLayout) {
  Published file{
      .name = "pretrain_llama2_13b_auto_parallel", .family = Family::kLlama, .data = 0, .model = kFactor};
  write(yaml(file));
  expect_refused(file.name, 64,
                 "parallel.parallel_mode is \"2\", which is not supported; megalith-autoplan --config FILE "
                 "--global-batch-size N finds a layout; write it as parallel_config, with parallel_mode 1");
  const CommandResult plans =
      run("megalith-autoplan --config run.yaml --global-batch-size 4 --world-size 2 --top 1");
  ASSERT_EQ(plans.code, 0) << plans.all();
  const std::vector<Pattern::Match> sizes =
      Pattern("--tensor-model-parallel-size ([0-9]+) --pipeline-model-parallel-size ([0-9]+)")
          .all_in(plans.out);
  ASSERT_FALSE(sizes.empty()) << plans.out;
  file.tensor = static_cast<int>(parse_int(sizes[0][1]).value());
  file.pipeline = static_cast<int>(parse_int(sizes[0][2]).value());
  file.data = 2 / (file.tensor * file.pipeline);
  write(yaml(file));
  expect_trained(file);
}

TEST_F(MindFormersFiles, Predict) {
  const Published files[] = {
      {.name = "predict_gpt2_small_fp16",
       .family = Family::kGpt2,
       .run_mode = "predict",
       .checkpoint = "gpt2",
       .parallel = false},
      {.name = "predict_llama2_7b",
       .family = Family::kLlama,
       .run_mode = "predict",
       .checkpoint = "llama2_7b",
       .parallel = false,
       .model = kFactor +
                "    block_size: 16\n    num_blocks: 1024\n    is_dynamic: True\n    qkv_concat: False\n"}};
  for (const Published& file : files) {
    write(yaml(file));
    expect_refused(file.name, 64,
                   "run_mode is \"predict\"; this program does train, megalith-generate predict");
    const std::string model = file.family == Family::kGpt2 ? "models/gpt2" : "models/llama";
    const CommandResult text =
        run(concat("megalith-generate --config run.yaml --model ", model, " --prompt 'The '"));
    EXPECT_EQ(text.code, 0) << file.name << text.all();
    const CommandResult own =
        run(concat("megalith-generate --model ", model, " --temperature 0 --max-length 16 --prompt 'The '"));
    EXPECT_EQ(text.out, own.out) << file.name;
  }
}

}  // namespace
}  // namespace megalith::test
