// Runs the fine-tuning commands that PaddleNLP's users type, with only the executable replaced
// (docs/from-paddlenlp.md).
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/convert/sources/hf_config.h"
#include "tests/apps/finetune/finetune_app.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// FinetuneApp's folder, with random LLaMA models of four layers and four heads under the names in the
/// commands, and with the records where the commands look for them, in "data".
class FinetuneCommands : public FinetuneApp {
 protected:
  FinetuneCommands() {
    write_llama(dir_ / "facebook/llama-7b");
    write_llama(dir_ / "__internal_testing__/tiny-random-llama");
  }

  /// Runs a PaddleNLP command in the folder. Its ranks share cores.
  CommandResult source(const std::string& options) const {
    const std::string folder = fs::path(app("finetune")).parent_path().string();
    return run_command("cd " + dir_.path().string() + " && OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive PATH=" +
                       folder + ":$PATH && megalith-finetune " + options);
  }

 private:
  static void write_llama(const std::string& folder) {
    fs::create_directories(folder);
    ModelConfig config;
    config.layers = config.heads = 4;
    config.hidden = 16;
    config.ffn_hidden = 32;
    config.seq_length = config.max_positions = 192;
    config.vocab_size = 700;
    config.position = PositionEmbedding::kRope;
    config.norm = Normalization::kRmsNorm;
    config.swiglu = config.untied_head = true;
    config.linear_bias = false;
    config.attention_dropout = config.hidden_dropout = 0;
    config.finish();
    write_file(folder + "/config.json", hf_config(config, DType::kF32, {.bos = 0, .eos = 0}).dump(2));
    fs::copy(test_data("text/goldens/trained/tokenizer.json"), folder);
    std::vector<TensorSpec> specs;
    for (const RenamedTensor& renamed : renamed_tensors(llama_names(), config))
      for (const TheirTensor& tensor : renamed.theirs)
        specs.push_back({tensor.name, DType::kF32, tensor.shape});
    SafetensorsWriter writer(folder + "/model.safetensors", specs);
    for (const TensorSpec& spec : writer.order()) {
      std::vector<float> values(static_cast<size_t>(spec.shape.elements()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = spec.shape.rank == 1 ? 1.0f : 0.1f * std::sin(static_cast<float>(i * i % 1009));
      writer.write(spec.name, values.data(), values.size() * sizeof(float));
    }
    writer.finish();
  }
};

const std::string kCommon =
    "--do_train --do_eval --per_device_train_batch_size 4 --per_device_eval_batch_size 4 "
    "--overwrite_output_dir "
    "--output_dir ./checkpoints/ --logging_steps 10 --fp16 --fp16_opt_level O2 --recompute "
    "--lr_scheduler_type "
    "linear --max_grad_norm 1.0 --warmup_steps 20 ";

void expect_done(const CommandResult& result) {
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("validation loss"), std::string::npos) << result.all();
}

TEST_F(FinetuneCommands, Item33TunesAllParametersOverFourRanks) {
  const CommandResult result = source(
      "--gpus \"0,1,2,3\" --model_name_or_path facebook/llama-7b --num_train_epochs 1 "
      "--tensor_parallel_degree 4 "
      "--gradient_accumulation_steps 32 --learning_rate 3e-5 " +
      kCommon);
  expect_done(result);
  EXPECT_NE(result.out.find("using world size: 4"), std::string::npos) << result.all();
  EXPECT_TRUE(file_exists(dir_ / "checkpoints/hf/model.safetensors"));
}

TEST_F(FinetuneCommands, Item34TrainsAnAdapter) {
  expect_done(
      source("--model_name_or_path facebook/llama-7b --num_train_epochs 2 --gradient_accumulation_steps 4 "
             "--learning_rate 3e-4 --lora True --r 8 " +
             kCommon));
  EXPECT_EQ(Json::load(dir_ / "checkpoints/adapter_config.json")["r"], Json(8));
}

TEST_F(FinetuneCommands, Item35TrainsAPrefix) {
  expect_done(
      source("--model_name_or_path facebook/llama-7b --num_train_epochs 2 --gradient_accumulation_steps 4 "
             "--learning_rate 3e-2 --prefix_tuning True --num_prefix_tokens 64 " +
             kCommon));
  EXPECT_EQ(Json::load(dir_ / "checkpoints/adapter_config.json")["num_virtual_tokens"], Json(64));
  const CommandResult text =
      run_command("cd " + dir_.path().string() + " && " + app("generate") +
                  " --model facebook/llama-7b --adapter checkpoints --prompt 'aaa is' --max-new-tokens 2");
  EXPECT_EQ(text.code, 0) << text.err;
}

// The command is as printed, without the blank before the backslash of "--fp16 0\".
TEST_F(FinetuneCommands, Item36TunesOverAPipeline) {
  const CommandResult result = source(
      "--gpus \"4,5,6,7\" --model_name_or_path __internal_testing__/tiny-random-llama --do_train --do_eval "
      "--num_train_epochs 1 --dataloader_num_workers 1 --gradient_accumulation_steps 16 "
      "--per_device_train_batch_size 1 --per_device_eval_batch_size 16 --tensor_parallel_degree 2 "
      "--pipeline_parallel_degree 2 --pipeline_parallel_config \"disable_p2p_cache_shape\" "
      "--overwrite_output_dir "
      "--output_dir ./checkpoints/ --logging_steps 1 --disable_tqdm 1 --eval_steps 100 "
      "--eval_with_do_generation 0 "
      "--fp16 0--fp16_opt_level O2 --recompute 0 --learning_rate 3e-5 --lr_scheduler_type linear "
      "--max_grad_norm 1.0 "
      "--warmup_steps 20");
  expect_done(result);
  EXPECT_NE(result.all().find("was read as two words"), std::string::npos) << result.all();
  const std::string said = result.all(), ignored = said.substr(said.find("ignored, no effect here: "));
  EXPECT_NE(ignored.substr(0, ignored.find('\n')).find(" --pipeline-parallel-config disable_p2p_cache_shape"),
            std::string::npos)
      << said;
}

TEST_F(FinetuneCommands, Item37LimitsPromptsAndAnswers) {
  std::string records;
  for (int i = 0; i < 8; ++i)
    records += concat("{\"instruction\": \"", std::string(400, 'x'), "\", \"output\": \"",
                      std::string(500, 'y'), "\"}\n");
  write_file(dir_ / "data/train.json", records);
  const CommandResult result = source(
      "--gpus \"0,1,2,3\" --model_name_or_path facebook/llama-7b --instruction_generation --num_train_epochs "
      "1 "
      "--tensor_parallel_degree 4 --gradient_accumulation_steps 32 --learning_rate 3e-5 " +
      kCommon);
  expect_done(result);
  EXPECT_NE(result.out.find("8 prompts truncated"), std::string::npos) << result.all();
  // The command also requests answers, which the first of the four ranks writes.
  const CommandResult answers = source(
      "--gpus \"0,1,2,3\" --model_name_or_path facebook/llama-7b --instruction_generation --num_train_epochs "
      "1 "
      "--tensor_parallel_degree 4 --do_generation True --save_total_limit 1 " +
      kCommon);
  expect_done(answers);
  EXPECT_NE(answers.out.find("answers: 4 records | BLEU: "), std::string::npos) << answers.all();
}

// The files of llm/config/llama in PaddleNLP, with the paths, lengths and steps of a test: each has the keys
// of one of them.
constexpr const char* kCommonKeys =
    R"("model_name_or_path": "facebook/llama-7b", "gradient_accumulation_steps": 2, "logging_steps": 1,
       "per_device_eval_batch_size": 8, "bf16": true, "fp16_opt_level": "O2", "do_train": true,
       "disable_tqdm": true, "load_best_model_at_end": true, "tensor_parallel_degree": 1,
       "unified_checkpoint": true, "use_flash_attention": true, "warmup_steps": 30, "max_steps": 3, )";
constexpr const char* kTuningKeys =
    R"("dataset_name_or_path": "./data", "per_device_train_batch_size": 1, "eval_accumulation_steps": 16,
       "num_train_epochs": 3, "learning_rate": 3e-05, "src_length": 40, "max_length": 64,
       "eval_with_do_generation": false, "metric_for_best_model": "accuracy", "save_total_limit": 1,
       "pipeline_parallel_degree": 1, "zero_padding": false, )";

TEST_F(FinetuneCommands, TakesPublishedFilesAsTheFirstWord) {
  const std::string tuning = std::string("{") + kCommonKeys + kTuningKeys,
                    epochs = R"("evaluation_strategy": "epoch", "save_strategy": "epoch", )";
  struct File {
    const char* name;
    std::string text;
  };
  for (const auto& [name, text] :
       {File{"sft", tuning + epochs + R"("do_eval": true, "recompute": false,
               "pipeline_parallel_config": "disable_p2p_cache_shape", "sharding": "stage2",)"},
        {"lora", tuning + R"("evaluation_strategy": "steps", "save_strategy": "steps", "save_steps": 1,
               "do_eval": false, "recompute": true, "sharding": "stage1", "lora": true, "pissa": false,)"},
        {"pt", tuning + epochs + R"("do_eval": true, "recompute": true, "prefix_tuning": true,)"}}) {
    write_file(dir_ / (std::string(name) + ".json"), text + "\"output_dir\": \"out_" + name + "\"}");
    const CommandResult result = source(std::string("./") + name + ".json");
    EXPECT_EQ(result.code, 0) << name << ": " << result.all();
    EXPECT_NE(result.all().find("validation loss at iteration 3"), std::string::npos) << result.all();
    EXPECT_NE(result.all().find("| accuracy: "), std::string::npos) << result.all();
    EXPECT_EQ(result.all().find("unified"), result.all().rfind("unified")) << result.all();
  }
  write_file(dir_ / "qlora.json", tuning + epochs + R"("do_eval": true, "lora": true,
               "weight_quantize_algo": "nf4", "output_dir": "out_q"})");
  const CommandResult refused = source("./qlora.json");
  EXPECT_EQ(refused.code, 64) << refused.all();
  EXPECT_NE(refused.all().find("give --qlora: 8 bits"), std::string::npos) << refused.all();
  const std::string eight =
      test::replaced(read_file(dir_ / "qlora.json"), R"("weight_quantize_algo": "nf4")", R"("qlora": true)");
  write_file(dir_ / "qlora.json", eight);
  EXPECT_EQ(source("./qlora.json").code, 0);
}

// The keys of MindFormers' configs/gpt2/run_gpt2_lora.yaml and configs/llama2/lora_llama2_7b.yaml, of which
// some have no meaning for records.
TEST_F(FinetuneCommands, TakesTheAdapterFilesOfMindFormers) {
  const auto file = [](const std::string& type, const std::string& modules) {
    return R"(seed: 0
run_mode: 'finetune'
output_dir: 'tuned'
load_checkpoint: "model"
resume_training: False
use_parallel: False
context:
  mode: 0
  device_target: "CPU"
runner_config:
  epochs: 2
  batch_size: 2
  sink_mode: True
optimizer:
  type: FP32StateAdamWeightDecay
  beta1: 0.9
  beta2: 0.95
  eps: 1.e-8
  learning_rate: 1.e-3
lr_schedule:
  type: CosineWithWarmUpLR
  learning_rate: 1.e-3
  warmup_ratio: 0.03
  total_steps: -1
train_dataset:
  data_loader:
    type: MindDataset
    dataset_dir: "data"
    shuffle: True
  batch_size: 2
  drop_remainder: True
runner_wrapper:
  type: MFTrainOneStepCell
  use_clip_grad: True
do_eval: False
callbacks:
  - type: MFLossMonitor
model:
  model_config:
    type: )" +
           type + R"(
    seq_length: 48
    hidden_size: 4096
    num_layers: 32
    compute_dtype: "float32"
    checkpoint_name_or_path: "nowhere"
    pet_config:
      pet_type: lora
      lora_rank: 4
      lora_alpha: 8
      lora_dropout: 0.05
      target_modules: ')" +
           modules + "'\n";
  };
  write_file(dir_ / "lora.yaml", file("GPT2Config", ".*dense1$|.*dense3$"));
  const CommandResult gpt2 = source("--config lora.yaml");
  EXPECT_EQ(gpt2.code, 0) << gpt2.all();
  EXPECT_NE(gpt2.all().find("queries, keys and values of GPT-2 are one layer"), std::string::npos)
      << gpt2.all();
  EXPECT_EQ(gpt2.all().find("validation loss"), std::string::npos) << gpt2.all();
  const auto adapter = [&] { return Json::load(dir_ / "tuned/adapter_config.json"); };
  EXPECT_EQ(adapter()["r"].as_int(), 4);
  EXPECT_EQ(adapter()["lora_alpha"].as_double(), 8);
  EXPECT_EQ(adapter()["target_modules"].dump(), "[\"c_attn\"]");
  fs::remove_all(dir_ / "tuned");
  fs::remove_all(dir_ / "model");
  fs::copy(test_data("parity/goldens/generate-llama"), dir_ / "model");
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  write_file(dir_ / "lora.yaml", file("LlamaConfig", ".*wq|.*wv"));
  const CommandResult llama = source("--config lora.yaml");
  EXPECT_EQ(llama.code, 0) << llama.all();
  EXPECT_EQ(adapter()["target_modules"].dump(), R"(["q_proj", "v_proj"])");
  // The command line comes before the file, under either name of the folder.
  const CommandResult elsewhere = source("--config lora.yaml --output-dir other");
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.all();
  EXPECT_NE(elsewhere.all().find("--output-dir on the command line comes before --save tuned (lora.yaml:3: "
                                 "output_dir)"),
            std::string::npos)
      << elsewhere.all();
  EXPECT_TRUE(fs::exists(dir_ / "other/adapter_config.json"));
  write_file(dir_ / "lora.yaml", file("LlamaConfig", ".*mapping"));
  const CommandResult unknown = source("--config lora.yaml");
  EXPECT_EQ(unknown.code, 64);
  EXPECT_NE(unknown.all().find("target_modules is \".*mapping\", wanted wq, wk"), std::string::npos)
      << unknown.all();
}

// --save on the command line comes before the file's output_dir. Within the command line the two contradict
// each other.
TEST_F(FinetuneCommands, SavesWhereTheCommandLineSays) {
  write_file(dir_ / "paddle.json",
             R"({"model_name_or_path": "facebook/llama-7b", "max_steps": 1, "lora": true,
    "dataset_name_or_path": "./data", "output_dir": "out"})");
  const CommandResult result = source("paddle.json --save saved");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.all().find("--save on the command line comes before --output-dir out (paddle.json:2)"),
            std::string::npos)
      << result.all();
  EXPECT_TRUE(fs::exists(dir_ / "saved/adapter_config.json"));
  EXPECT_FALSE(fs::exists(dir_ / "out"));
  const CommandResult both = source("paddle.json --save saved --output-dir other");
  EXPECT_EQ(both.code, 64);
  EXPECT_NE(both.err.find("--output-dir other and --save saved contradict each other"), std::string::npos)
      << both.err;
}

// LoRA has a rate of its own unless the command or its file is PaddleNLP's or LLaMA-Factory's, whose
// TrainingArguments say 5e-5.
TEST_F(FinetuneCommands, TakesTheRateOfTheMethod) {
  write_file(dir_ / "paddle.json",
             R"({"model_name_or_path": "facebook/llama-7b", "max_steps": 1, "lora": true,
    "dataset_name_or_path": "./data", "output_dir": "out", "overwrite_output_dir": true, "logging_steps": 1,
    "lr_scheduler_type": "constant"})");
  write_file(dir_ / "factory.yaml",
             "model_name_or_path: facebook/llama-7b\nstage: sft\nfinetuning_type: lora\ndo_train: true\n"
             "dataset: data/train.json\noutput_dir: out\noverwrite_output_dir: true\nmax_steps: 1\n"
             "logging_steps: 1\nlr_scheduler_type: constant\n");
  const std::string
      own =
          "--model facebook/llama-7b --data data --output-dir out --overwrite-output-dir --max-steps 1 "
          "--lr-decay-style constant --log-interval 1 ",
      paddle =
          "--model_name_or_path facebook/llama-7b --output_dir out --overwrite_output_dir "
          "--max_steps 1 --lr_scheduler_type constant --logging_steps 1 --lora True ";
  for (const auto& [command, rate] : {std::pair{own, "5.000000E-05"},
                                      {own + "--lora", "2.000000E-04"},
                                      {own + "--finetuning-type lora", "2.000000E-04"},
                                      {own + "--finetuning-type lora --stage sft", "5.000000E-05"},
                                      {std::string("--config factory.yaml"), "5.000000E-05"},
                                      {own + "--lora --lr 3e-3", "3.000000E-03"},
                                      {own + "--prefix-tuning", "5.000000E-05"},
                                      {paddle + "--dataset_name_or_path data", "5.000000E-05"},
                                      {paddle + "--fp16_opt_level O2", "5.000000E-05"},
                                      {std::string("./paddle.json"), "5.000000E-05"},
                                      {std::string("--config paddle.json"), "5.000000E-05"}}) {
    const CommandResult result = source(command);
    EXPECT_EQ(result.code, 0) << command << result.all();
    EXPECT_NE(result.all().find(std::string("learning rate: ") + rate), std::string::npos)
        << command << result.all();
  }
}

TEST_F(FinetuneCommands, TakesThePublishedFileOfPreferences) {
  fs::create_directory(dir_ / "pairs");
  for (const char* name : {"train", "dev"}) {
    std::string lines;
    for (int i = 0; i < 20; ++i)
      lines += concat(R"({"src": [")", i,
                      R"( is"], "tgt": [], "response": [[" 1"], [" 2"]], "sort": [1, 0]})", "\n");
    write_file(dir_ / concat("pairs/", name, ".jsonl"), lines);
  }
  write_file(dir_ / "dpo.json", std::string("{") + kCommonKeys + R"("train_dataset_path": "pairs/train.jsonl",
      "dev_dataset_path": "pairs/dev.jsonl", "output_dir": "out", "per_device_train_batch_size": 1,
      "num_train_epochs": 1, "learning_rate": 1e-06, "evaluation_strategy": "steps", "save_strategy": "steps",
      "eval_steps": 100, "save_steps": 500, "max_seq_len": 64, "max_prompt_len": 32, "do_eval": true,
      "sharding": "stage1", "flash_mask": true, "recompute": false, "recompute_granularity": "full",
      "beta": 0.1, "benchmark": false, "loss_type": "sigmoid", "label_smoothing": 0.0,
      "autotuner_benchmark": false, "lazy": false, "seed": 42})");
  const CommandResult result = source("./dpo.json --log-json log.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NEAR(losses("log.jsonl").front(), std::log(2.0), 1e-3);  // in bf16, both answers gain nothing yet
  EXPECT_NE(result.all().find("--recompute-granularity with --recompute false"), std::string::npos)
      << result.all();
}

}  // namespace
}  // namespace megalith::test
