#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/apps/finetune/finetune_app.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const std::string kLora =
    "--lora True --r 4 --do_train --do_eval --num_train_epochs 4 --per_device_train_batch_size 4 "
    "--learning_rate 2e-2 --lr_scheduler_type linear --warmup_steps 2 --logging_steps 5 ";

TEST_F(FinetuneApp, TrainsAnAdapterThatGenerateTakes) {
  const CommandResult result = tune(kLora + "--num_train_epochs 12 --log-json log.jsonl --merge-weights");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("% of them learned"), std::string::npos) << result.all();
  EXPECT_NE(result.out.find("validation loss"), std::string::npos) << result.all();
  const std::vector<double> curve = losses("log.jsonl");
  ASSERT_EQ(curve.size(), 60U);  // 5 steps per epoch
  EXPECT_LT(curve.back(), 0.5 * curve.front());
  const Json config = Json::load(dir_ / "out/adapter_config.json");
  EXPECT_EQ(config["r"], Json(4));
  EXPECT_DOUBLE_EQ(config["lora_alpha"].as_double(), 8);
  const auto generate = [&](const std::string& model) {
    return run_command("cd " + dir_.path().string() + " && " + app("generate") + " --model " + model +
                       " --prompt 'bb is' --max-new-tokens 3 --temperature 0");
  };
  const CommandResult adapted = generate("model --adapter out"), merged = generate("out/merged");
  EXPECT_EQ(adapted.code, 0) << adapted.err;
  EXPECT_EQ(adapted.out.find("bb is 2"), 0U) << adapted.out;
  EXPECT_EQ(merged.out, adapted.out) << merged.err;
}

// A program that needs a model refuses an adapter and says which command merges it into its model.
TEST_F(FinetuneApp, SaysWhatJoinsAnAdapterWithItsModel) {
  const auto said = [&](const std::string& program, const std::string& options) {
    const CommandResult result =
        run_command("cd " + dir_.path().string() + " && " + app(program) + " " + options);
    EXPECT_EQ(result.code, 65) << result.all();
    return result.err;
  };
  ASSERT_EQ(tune("--lora --max-steps 1 --micro-batch-size 1 --learning_rate 1e-3", "fl").code, 0);
  ASSERT_EQ(
      tune("--prefix-tuning --num-prefix-tokens 5 --max-steps 1 --micro-batch-size 1 --learning_rate 1e-3",
           "fp")
          .code,
      0);
  const std::string train =
      "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 8 --max-position-embeddings 8 "
      "--micro-batch-size 1 --train-iters 1 --lr 1e-3 --mock-data --vocab-size 700 --threads 1 --load ";
  const std::string join = "megalith-convert model --merge-adapter fl --to hf --output FOLDER";
  const std::string both = "megalith-generate --model model --adapter fp";
  for (const char* const end : {"", "/iter_0000001", "/iter_0000001 --finetune", " --use-checkpoint-args"}) {
    EXPECT_NE(said("pretrain", train + "fl" + end).find(join), std::string::npos) << end;
    EXPECT_NE(said("pretrain", train + "fp" + end).find(both), std::string::npos) << end;
  }
  EXPECT_NE(said("convert", "fl/iter_0000001").find(join), std::string::npos);
  EXPECT_NE(said("generate", "--prompt a --model fl").find(join), std::string::npos);
  EXPECT_NE(said("generate", "--prompt a --model fp").find(both), std::string::npos);
  const CommandResult joined =
      run_command("cd " + dir_.path().string() + " && " + app("convert") +
                  " model --merge-adapter fl --to hf --output joined && " + app("generate") + " --model " +
                  "model --adapter fp --prompt a --max-new-tokens 1");
  EXPECT_EQ(joined.code, 0) << joined.all();
}

// The check of what was written computes the sum in fp32; a model of bf16 rounds it, which is no error.
TEST_F(FinetuneApp, MergesAnAdapterIntoAModelOfBf16) {
  ASSERT_EQ(tune("--lora --max-steps 8 --micro-batch-size 1 --learning_rate 5e-2", "strong").code, 0);
  const CommandResult merged =
      run_command("cd " + dir_.path().string() + " && " + app("convert") +
                  " model --to hf --dtype bf16 --output narrow && " + app("convert") +
                  " narrow --merge-adapter strong --to hf --output merged_narrow");
  EXPECT_EQ(merged.code, 0) << merged.all();
}

TEST_F(FinetuneApp, LayoutsHaveTheLossesOfOneRank) {
  ASSERT_EQ(tune(kLora + "--log-json one.jsonl").code, 0);
  const std::vector<double> one = losses("one.jsonl");
  for (const char* layout : {"--tensor_parallel_degree 2 --pipeline_parallel_degree 2 --nproc 4",
                             "--nproc 2 --sharding stage2 --per_device_train_batch_size 2"}) {
    const CommandResult result = tune(kLora + "--overwrite_output_dir --log-json shared.jsonl " + layout);
    ASSERT_EQ(result.code, 0) << result.err;
    expect_losses("shared.jsonl", one);
    fs::remove(dir_ / "shared.jsonl");
  }
}

TEST_F(FinetuneApp, ResumesWhereItStopped) {
  ASSERT_EQ(tune(kLora + "--log-json whole.jsonl").code, 0);
  const std::vector<double> whole = losses("whole.jsonl");
  fs::remove_all(dir_ / "out");
  const std::string steps = kLora + "--save_steps 4 --log-json parts.jsonl ";
  ASSERT_EQ(tune(steps + "--exit-interval 8").code, 0);
  const CommandResult rest = tune(steps);
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(losses("parts.jsonl"), whole);  // equal bit for bit
}

// A run given PaddleNLP's option names resumes from the named checkpoint and writes to another folder.
TEST_F(FinetuneApp, ResumesFromTheCheckpointThatIsNamed) {
  ASSERT_EQ(tune(kLora + "--log-json whole.jsonl --save_steps 8").code, 0);
  const CommandResult rest =
      tune(kLora +
               "--log-json rest.jsonl --resume_from_checkpoint out/iter_0000008 --report_to visualdl "
               "--sharding_parallel_degree 1 --data_parallel_degree 1",
           "rest");
  ASSERT_EQ(rest.code, 0) << rest.all();
  const std::vector<double> whole = losses("whole.jsonl");
  EXPECT_EQ(losses("rest.jsonl"), std::vector<double>(whole.begin() + 8, whole.end()));
  EXPECT_TRUE(fs::is_directory(dir_ / "rest/runs"));  // TensorBoard's files
}

TEST_F(FinetuneApp, TrainsAllParametersToAHuggingFaceFolder) {
  const CommandResult result = tune(
      "--num_train_epochs 1.5 --per_device_train_batch_size 2 --gradient_accumulation_steps 2 "
      "--learning_rate 5e-3 "
      "--packing --log-json log.jsonl");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("packed: 20 records in"), std::string::npos) << result.all();
  EXPECT_TRUE(file_exists(dir_ / "out/hf/config.json"));
  const CommandResult text = run_command("cd " + dir_.path().string() + " && " + app("generate") +
                                         " --model out/hf --prompt 'bb is' --max-new-tokens 2");
  EXPECT_EQ(text.code, 0) << text.err;
}

// A model of 16 bits is written in 16 bits, whole or with its adapter added, unless another type is wanted.
TEST_F(FinetuneApp, WritesTheTypeOfTheModel) {
  const std::string convert = "cd " + dir_.path().string() + " && " + app("convert");
  ASSERT_EQ(run_command(convert + " model --dtype bf16 --output narrow").code, 0);
  fs::rename(dir_ / "model", dir_ / "wide");
  fs::rename(dir_ / "narrow", dir_ / "model");
  const auto type_of = [&](const std::string& model) {
    const std::string file = read_file(dir_ / model + "/model.safetensors");
    EXPECT_EQ(Json::load(dir_ / model + "/config.json")["dtype"].as_string(),
              file.find("\"BF16\"") != std::string::npos ? "bfloat16" : "float32");
    return file.substr(file.find("\"dtype\":\"") + 9, 4);
  };
  ASSERT_EQ(tune("--max-steps 1").code, 0);
  EXPECT_EQ(type_of("out/hf"), "BF16");
  ASSERT_EQ(tune("--max-steps 1 --export-dtype fp32", "wider").code, 0);
  EXPECT_EQ(type_of("wider/hf"), "F32\"");
  ASSERT_EQ(tune("--max-steps 1 --lora --merge-weights", "lora").code, 0);
  EXPECT_EQ(type_of("lora/merged"), "BF16");
  ASSERT_EQ(tune("--max-steps 1 --lora --merge-weights --export-dtype fp32", "lora32").code, 0);
  EXPECT_EQ(type_of("lora32/merged"), "F32\"");
}

TEST_F(FinetuneApp, CheckpointsKeepTheChatTemplate) {
  const std::string chat = "{% for m in messages %}{{ m.content }}{% endfor %}";
  write_file(dir_ / "model/chat_template.jinja", chat);
  ASSERT_EQ(tune("--max_steps 1").code, 0);
  const CommandResult made = run_command(app("convert") + " " + dir_ / "out" + " --output " + dir_ / "later");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(read_file(dir_ / "later/chat_template.jinja"), chat);
}

TEST_F(FinetuneApp, KeepsTheBestModelAndStopsEarly) {
  const CommandResult result =
      tune(kLora +
           "--learning_rate 0.2 --num_train_epochs 20 --eval_steps 2 --load_best_model_at_end "
           "--early_stopping_patience 2 --log-json log.jsonl");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("evaluations were no better"), std::string::npos) << result.all();
  EXPECT_LT(losses("log.jsonl").size(), 100U);
  const int64_t best = best_iteration("log.jsonl");
  EXPECT_NE(result.out.find(concat("wrote the adapter of iteration ", best, " to out")), std::string::npos)
      << result.all();
}

// Stops at points where the best checkpoint is older than the newest: first one of the same run, then one of
// the run before. The best checkpoint must be kept.
TEST_F(FinetuneApp, KeepsTheBestCheckpointBesideTheNewest) {
  const std::string steps =
      kLora +
      "--learning_rate 0.2 --num_train_epochs 20 --eval_steps 2 --save_steps 2 --seed 4 "
      "--load_best_model_at_end --save_total_limit 1 --log-json log.jsonl ";
  for (const int64_t end : {6, 8, 20}) {
    const CommandResult result = tune(steps + concat("--exit-interval ", end));
    ASSERT_EQ(result.code, 0) << result.all();
    const int64_t best = best_iteration("log.jsonl");
    if (end < 20) {
      EXPECT_LT(best, 6)
          << "which of them is lowest is the floats' business; that it is none of the newest is not";
    }
    std::set<std::string> kept;
    for (const auto& entry : fs::directory_iterator(dir_ / "out"))
      if (const std::string name = entry.path().filename(); name.starts_with("iter_")) kept.insert(name);
    EXPECT_EQ(kept, (std::set<std::string>{iteration_folder(best), iteration_folder(end)}));
  }
}

TEST_F(FinetuneApp, LearnsWhichAnswerIsBetter) {
  write_pairs();
  const std::string steps =
      "--stage dpo --pref_beta 0.3 --num_train_epochs 3 --per_device_train_batch_size 4 --learning_rate "
      "5e-3 ";
  for (const std::string method : {"--lora True --r 4 ", ""}) {
    const CommandResult result = tune(steps + method + "--log-json one.jsonl --overwrite_output_dir");
    ASSERT_EQ(result.code, 0) << result.all();
    EXPECT_NE(result.out.find("reference: log probabilities of 52 answers"), std::string::npos)
        << result.all();
    const std::vector<double> one = losses("one.jsonl");
    ASSERT_EQ(one.size(), 15U);  // 5 steps per epoch, each with 4 pairs
    EXPECT_NEAR(one.front(), std::log(2.0), 1e-6);
    EXPECT_LT(one.back(), 0.6 * one.front());
    EXPECT_LT(last_evaluation("one.jsonl"), 0.5);
    const std::string layout =
        "--nproc 4 --tensor_parallel_degree 2 --pipeline_parallel_degree 2 --log-json shared.jsonl ";
    ASSERT_EQ(tune(steps + method + layout + "--overwrite_output_dir").code, 0);
    expect_losses("shared.jsonl", one);
    // An interrupted and resumed run must give the same bits.
    ASSERT_EQ(tune(steps + method + "--overwrite_output_dir --log-json parts.jsonl --exit-interval 7").code,
              0);
    ASSERT_EQ(tune(steps + method + "--log-json parts.jsonl").code, 0);
    EXPECT_EQ(losses("parts.jsonl"), one);
    for (const char* log : {"one.jsonl", "shared.jsonl", "parts.jsonl"}) fs::remove(dir_ / log);
  }
}

TEST_F(FinetuneApp, KeepsTheBaseInEightBits) {
  const CommandResult result =
      tune(kLora + "--qlora True --loraplus_lr_ratio 4 --num_train_epochs 12 --log-json log.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find("over linear layers kept in 8 bits"), std::string::npos) << result.all();
  const std::vector<double> curve = losses("log.jsonl");
  EXPECT_LT(curve.back(), 0.5 * curve.front());
  EXPECT_TRUE(file_exists(dir_ / "out/adapter_model.safetensors"));
}

// The expected scores are those that sacrebleu and rouge-score give for the answers in the file. They are
// computed by hand here: every answer is one token, right or wrong.
TEST_F(FinetuneApp, AnswersTheRecordsToEvaluateOn) {
  const CommandResult result =
      tune(kLora +
           "--num_train_epochs 12 --do_generation 1 --max_new_tokens 3 --merge-weights --eval-strategy no");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> lines =
      split(trim(read_file(dir_ / "out/generated_predictions.jsonl")), '\n');
  ASSERT_EQ(lines.size(), 4U);
  int right = 0;
  for (const std::string& line : lines) {
    const Json json = Json::parse(line, "predictions");
    right += trim(json["predict"].as_string()) == trim(json["label"].as_string()) ? 1 : 0;
    const CommandResult text = run_command("cd " + dir_.path().string() + " && " + app("generate") +
                                           " --model out/merged --prompt '" + json["prompt"].as_string() +
                                           "' --max-new-tokens 3 --temperature 0 --json");
    EXPECT_EQ(Json::parse(text.out, "generate")["text"], json["predict"]) << line;
  }
  EXPECT_GT(right, 0);
  const Json scores = Json::load(dir_ / "out/predict_results.json");
  EXPECT_DOUBLE_EQ(scores["predict_exact_match"].as_double(), 25.0 * right);
  EXPECT_NE(result.out.find(concat("exact match: ", 25 * right, ".00 %")), std::string::npos) << result.all();

  // Evaluates the same adapter without training, on two ranks. The first rank writes the answers, which must
  // be the same.
  const std::string before = read_file(dir_ / "out/generated_predictions.jsonl");
  const CommandResult again = tune(
      "--adapter out --no-do-train --per_device_train_batch_size 2 --nproc 2 --tensor_parallel_degree 2 "
      "--do_generation --max_new_tokens 3",
      "again");
  ASSERT_EQ(again.code, 0) << again.all();
  EXPECT_EQ(read_file(dir_ / "again/generated_predictions.jsonl"), before);
}

// The keys of axolotl's examples/llama-3/lora-1b.yml (version 0.8), with a model and records of our own.
const std::string kAxolotl = R"(base_model: model
model_type: LlamaForCausalLM
tokenizer_type: AutoTokenizer
load_in_8bit: true
load_in_4bit: false
strict: false
datasets:
  - path: data
    type: alpaca
dataset_prepared_path: last_run_prepared
val_set_size: 0.1
output_dir: ./outputs/lora-out
adapter: lora
lora_model_dir:
sequence_len: 64
sample_packing: true
eval_sample_packing: true
pad_to_sequence_len: true
lora_r: 16
lora_alpha: 32
lora_dropout: 0.05
lora_target_linear: true
lora_fan_in_fan_out:
wandb_project:
wandb_entity:
gradient_accumulation_steps: 2
micro_batch_size: 2
num_epochs: 2
optimizer: adamw_torch
lr_scheduler: cosine
learning_rate: 0.0002
bf16: false
tf32: false
gradient_checkpointing: true
resume_from_checkpoint:
logging_steps: 1
flash_attention: true
warmup_steps: 1
evals_per_epoch: 1
saves_per_epoch: 1
weight_decay: 0.0
special_tokens:
  pad_token: "<|endoftext|>"
)";

TEST_F(FinetuneApp, TakesAFileOfAxolotl) {
  fs::remove(dir_ / "data/dev.json");
  write_file(dir_ / "lora.yml", kAxolotl);
  const CommandResult result = run("--config lora.yml --threads 1");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find("rank 16 on all-linear, over linear layers kept in 8 bits"), std::string::npos)
      << result.all();
  EXPECT_NE(result.out.find("packed: 18 records"), std::string::npos) << result.all();
  EXPECT_NE(result.out.find("ignored, no effect here:"), std::string::npos) << result.all();
  const Json config = Json::load(dir_ / "outputs/lora-out/adapter_config.json");
  EXPECT_EQ(config["r"], Json(16));
  EXPECT_DOUBLE_EQ(config["lora_alpha"].as_double(), 32);
  EXPECT_DOUBLE_EQ(config["lora_dropout"].as_double(), 0.05);

  const auto expect_bad = [&](const std::string& line, const std::string& why) {
    write_file(dir_ / "bad.yml", kAxolotl + line + "\n");
    const CommandResult bad = run("--config bad.yml");
    EXPECT_EQ(bad.code, 64) << line << bad.all();
    EXPECT_NE(bad.err.find(why), std::string::npos) << line << bad.err;
  };
  expect_bad("rl: kto", "bad.yml:44: rl is \"kto\", which is not supported; give dpo");
  expect_bad("train_on_inputs: true", "give false: answers are learned");
  expect_bad("neftune_noise_alpha: 5", "neftune_noise_alpha");
}

// The keys of LLaMA-Factory's examples/train_lora/llama3_lora_sft.yaml, with a model and records of our own.
// The key for a template is left out: this model has no chat template.
const std::string kLlamaFactory = R"(### model
model_name_or_path: model
trust_remote_code: true
### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
### dataset
dataset: data/train.json
cutoff_len: 64
max_samples: 16
overwrite_cache: true
preprocessing_num_workers: 16
dataloader_num_workers: 4
### output
output_dir: saves/lora/sft
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: false
ddp_timeout: 180000000
resume_from_checkpoint: null
### eval
val_size: 0.25
per_device_eval_batch_size: 1
eval_strategy: steps
eval_steps: 500
)";

TEST_F(FinetuneApp, TakesAFileOfLlamaFactory) {
  write_file(dir_ / "sft.yaml", kLlamaFactory);
  const CommandResult result = run("--config sft.yaml --threads 1 --do-generation --max-new-tokens 2");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find("data/train.json: 12 records"), std::string::npos) << result.all();
  EXPECT_NE(result.out.find("data/train.json, held out: 4 records"), std::string::npos) << result.all();
  EXPECT_NE(result.out.find("answers: 4 records"), std::string::npos) << result.all();
  EXPECT_EQ(Json::load(dir_ / "saves/lora/sft/adapter_config.json")["target_modules"].as_array().size(), 4U);
  const CommandResult both = run("--config sft.yaml --eval-data data/dev.json");
  EXPECT_EQ(both.code, 64);
  EXPECT_NE(both.err.find("--val-size 0.25 holds out records of data/train.json, but data/dev.json is there"),
            std::string::npos)
      << both.err;
  EXPECT_NE(run("--config sft.yaml --val-size 16").err.find("holds out 16 of the 16 records"),
            std::string::npos);
}

// LLaMA-Factory's template makes chats of instruction records, too.
TEST_F(FinetuneApp, TakesLlamaFactorysNameOfATemplate) {
  write_file(dir_ / "model/chat_template.jinja",
             "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
             "{% if add_generation_prompt %}<assistant>{% endif %}");
  for (const char* name : {"train", "dev"}) {
    const std::string file = dir_ / "data/" + (std::string(name) + ".json");
    write_file(file, "{\"instruction\": \"a\", \"output\": \"b\"}\n");
  }
  const std::string run = "--max-steps 2 --micro-batch-size 1 --log-json ";
  ASSERT_EQ(tune(run + "named.jsonl --template llama3", "named").code, 0);
  ASSERT_EQ(tune(run + "chat.jsonl --prompt-style chat", "chat").code, 0);
  const CommandResult plain = tune(run + "plain.jsonl --prompt-style plain", "plain");
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(losses("named.jsonl"), losses("chat.jsonl"));
  EXPECT_NE(losses("named.jsonl"), losses("plain.jsonl"));
  EXPECT_EQ(tune("--max-steps 2 --template vicuna", "other").code, 64);
}

// axolotl: a share 1 / (evals_per_epoch * num_epochs) of the steps, rounded up.
TEST_F(FinetuneApp, EvaluatesAndSavesSeveralTimesInAnEpoch) {
  fs::remove(dir_ / "data/dev.json");
  write_file(dir_ / "lora.yml",
             test::replaced(test::replaced(kAxolotl, "evals_per_epoch: 1", "evals_per_epoch: 4"),
                            "optimizer: adamw_torch", "optimizer: adamw_8bit"));
  const CommandResult result = run("--config lora.yml --threads 1 --max-steps 16 --log-json log.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  std::set<int64_t> at;
  for (const Json& one : log_lines(dir_ / "log.jsonl", "valid")) at.insert(one["iteration"].as_int());
  EXPECT_EQ(at, (std::set<int64_t>{2, 4, 6, 8, 10, 12, 14, 16}));
}

// The ranks get equal numbers of records and tokens, but one record differs.
TEST_F(FinetuneApp, RefusesRanksWithOtherRecords) {
  SKIP_WITHOUT_GLOO();
  fs::copy(dir_ / "data", dir_ / "data0");
  fs::copy(dir_ / "data", dir_ / "data1");
  std::string records = read_file(dir_ / "data1/train.json");
  const size_t at = records.find("\"tgt\": \" 1\"");
  ASSERT_NE(at, std::string::npos);
  write_file(dir_ / "data1/train.json", records.replace(at, 11, "\"tgt\": \" 2\""));
  const std::string port = std::to_string(free_port());
  const CommandResult result = run_command(
      "cd " + dir_.path().string() + "; export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
      "; for r in 0 1; do export RANK=$r; " + app("finetune") +
      " --model_name_or_path model --dataset_name_or_path data$r --threads 1 --output_dir out --lora "
      "--max-steps 2 > log.$r 2>&1 & done; wait; cat log.0 log.1");
  EXPECT_NE(result.out.find("; give every machine the same files"), std::string::npos) << result.out;
  EXPECT_FALSE(fs::exists(dir_ / "out/adapter_config.json"));
}

// The ranks begin with other weights of the same shapes: another model, another adapter, another checkpoint.
TEST_F(FinetuneApp, RefusesRanksThatBeginWithOtherWeights) {
  SKIP_WITHOUT_GLOO();
  fs::copy(dir_ / "model", dir_ / "model0");
  fs::copy(dir_ / "model", dir_ / "model1");
  change_weights("model1");
  for (const char* seed : {"0", "1"})
    ASSERT_EQ(tune(concat("--lora --max-steps 2 --lr 0.01 --seed ", seed), concat("adapter", seed)).code, 0);
  for (const auto& [options, option] :
       {std::pair<std::string, std::string>{"--model_name_or_path model$r --lora", "--model \"model"},
        {"--model_name_or_path model --adapter adapter$r", "--adapter \"adapter"},
        {"--model_name_or_path model --lora --resume_from_checkpoint adapter$r",
         "--resume-from-checkpoint"}}) {
    const CommandResult result = run_command(
        "cd " + dir_.path().string() +
        "; export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()) +
        "; for r in 0 1; do export RANK=$r; " + app("finetune") + " " + options +
        " --dataset_name_or_path data --threads 1 --output_dir out --max-steps 4 > log.$r 2>&1 & done; wait; "
        "cat log.0 log.1");
    EXPECT_NE(result.out.find(option), std::string::npos) << result.out;
    EXPECT_NE(
        result.out.find(" has other contents on rank 1 than on rank 0; give every machine the same files"),
        std::string::npos)
        << options << ": " << result.out;
    EXPECT_FALSE(fs::exists(dir_ / "out/adapter_config.json"));
  }
}

// The output folder may not be the folder of the model that is tuned, or one with another finished run.
TEST_F(FinetuneApp, ReplacesNoModelAndNoOtherRun) {
  const auto expect_refused = [&](const CommandResult& result, const std::string& part) {
    EXPECT_EQ(result.code, 64) << result.all();
    EXPECT_NE(result.all().find(part), std::string::npos) << result.all();
  };
  const std::string weights = read_file(dir_ / "model/model.safetensors");
  expect_refused(tune("--lora --max-steps 2", "model"), "would be replaced by the result of the run");
  expect_refused(tune("--max-steps 2", "./model/../model"), "would be replaced by the result of the run");
  EXPECT_EQ(read_file(dir_ / "model/model.safetensors"), weights);
  EXPECT_FALSE(fs::exists(dir_ / "model/adapter_config.json"));
  ASSERT_EQ(tune("--lora --max-steps 2 --save-steps 1", "done").code, 0);
  ASSERT_EQ(tune("--lora --max-steps 1", "other").code, 0);
  expect_refused(tune("--lora --max-steps 3 --resume_from_checkpoint other", "done"),
                 "resume from it with --resume-from-checkpoint done");
  expect_refused(tune("--lora --max-steps 3 --resume_from_checkpoint done/iter_0000001", "done"),
                 "would replace what follows");
  EXPECT_EQ(
      tune("--lora --max-steps 2 --resume_from_checkpoint done/iter_0000001 --overwrite_output_dir", "done")
          .code,
      0);
}

TEST_F(FinetuneApp, RefusesByName) {
  const auto expect_refused = [&](const std::string& options, int code, const std::string& why) {
    const CommandResult result = tune(options);
    EXPECT_EQ(result.code, code) << options << "\n" << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << options << "\n" << result.err;
  };
  expect_refused("--p-tuning True", 64, "--p-tuning is not supported");
  expect_refused("--ptuning True", 64, "--ptuning is not supported");
  expect_refused("--qlora True", 64, "--qlora needs --lora");
  expect_refused("--loraplus_lr_ratio 16", 64, "--loraplus-lr-ratio needs --lora");
  expect_refused("--load_in_4bit True", 64, "--load_in_4bit is not supported; give --qlora");
  expect_refused("--dpo --packing", 64, "--packing and --dpo contradict each other");
  expect_refused("--dpo --prefix-tuning", 64, "--dpo trains all parameters or --lora");
  expect_refused("--dpo --lora --lora-dropout 0.1", 64, "--dpo needs dropout 0");
  expect_refused("--stage ppo", 64, "ppo");
  expect_refused("--dpo", 65, "train.json:1: found \"src\", \"tgt\"; wanted \"chosen\"");
  expect_refused("--data_parallel_degree 2", 64, "--data-parallel-degree 2 is not supported");
  expect_refused("--sharding_parallel_degree 3", 64, "shards over all 1 data-parallel ranks");
  expect_refused("--report_to wandb", 64, "--report-to wandb is not supported");
  expect_refused("--resume_from_checkpoint True --overwrite_output_dir", 64, "contradict each other");
  expect_refused("--resume_from_checkpoint other", 66, "other");
  expect_refused("--ckpt-format torch", 64, "--ckpt-format torch");
  expect_refused("--save elsewhere", 64, "--output-dir out and --save elsewhere contradict each other");
  expect_refused("--lora --target-modules q_proj", 64, "\"q_proj\": the model has no such linear layer");
  expect_refused("--merge-weights", 64, "--merge-weights needs --lora");
  expect_refused("--pipeline_parallel_config magic", 64, "\"magic\" is not known");
  fs::rename(dir_ / "data/dev.json", dir_ / "data/kept.json");
  expect_refused("--do_generation True", 64, "--do-generation needs records to answer");
  expect_refused("--max-length 1000", 64, "the model has 64 positions");
  write_file(dir_ / "data/train.json", "{\"src\": \"a\", \"tgt\": \"b\"}\n{\"source\": 1}\n");
  expect_refused("", 65, "train.json:2: found \"source\"");
  fs::remove(dir_ / "data/train.json");
  expect_refused("", 66, "holds neither train.json nor train.jsonl");
}

}  // namespace
}  // namespace megalith::test
