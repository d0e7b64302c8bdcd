// Runs the printed command of PaddleNLP's run_pretrain.py, with smaller sizes and our executable.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/once/pattern.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PaddleApp : public PretrainApp {
 protected:
  PaddleApp() {
    fs::create_directories(dir_ / "facebook");
    fs::copy(test_data("parity/goldens/generate-llama"), dir_ / "facebook/llama-7b");
    fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "facebook/llama-7b");
    fs::create_directories(dir_ / "data");
    for (const char* end : {".bin", ".idx"})
      fs::rename(dir_ / ("c" + std::string(end)), dir_ / ("data/c" + std::string(end)));
  }
  /// Runs the command with one rank, without the launcher's options.
  CommandResult pretrain(const std::string& options) const { return run(kLine + options); }
  static std::vector<double> numbers(const std::string& log, const std::string& name) {
    std::vector<double> out;
    const test::Pattern pattern(name + "([0-9.eE+-]+)");
    for (const test::Pattern::Match& at : pattern.all_in(log)) out.push_back(*parse_double(at[1]));
    return out;
  }
  const std::string kLine =
      "--model_type llama --model_name_or_path facebook/llama-7b --tokenizer_name_or_path facebook/llama-7b "
      "--input_dir ./data --split 8,1,1 --max_seq_length 16 --per_device_train_batch_size 2 "
      "--learning_rate 0.001 --min_learning_rate 0.0005 --lr_scheduler_type cosine --max_steps 6 "
      "--save_steps 3 --weight_decay 0.01 --warmup_ratio 0.01 --max_grad_norm 1.0 --logging_steps 2 "
      "--eval_steps 3 --eval_iters 2 --do_train --do_eval --device cpu --threads 1 --log-style paddle ";
};

// The printed command has backslashes without a blank before them, per-rank logs, stage2, VisualDL and the
// model's weights. Two ranks with one sample each must give the losses of one rank with two samples.
TEST_F(PaddleApp, RunsThePrintedLine) {
  SKIP_WITHOUT_GLOO();
  const std::string script = test::replaced(R"(
task_name="llama_hybid"
PROGRAM \
--gpus "0,1" \
--log_dir "output/$task_name""_log" \
--model_type "llama" \
--model_name_or_path "facebook/llama-7b" \
--tokenizer_name_or_path "facebook/llama-7b" \
--input_dir "./data" \
--output_dir "output/$task_name" \
--split 949,50,1 \
--max_seq_length 16 \
--per_device_train_batch_size 1 \
--per_device_eval_batch_size 1 \
--use_flash_attention 1 \
--use_fused_rms_norm 0 \
--fp16 \
--fp16_opt_level "O2" \
--scale_loss 1024 \
--learning_rate 0.001 \
--min_learning_rate 0.0005 \
--lr_scheduler_type "cosine" \
--max_steps 6 \
--save_steps 3 \
--weight_decay 0.01 \
--warmup_ratio 0.01 \
--max_grad_norm 1.0 \
--logging_steps 2\
--dataloader_num_workers 1 \
--sharding "stage2" \
--eval_steps 3 \
--report_to "visualdl" \
--disable_tqdm true \
--continue_training 1\
--recompute 1 \
--do_train \
--do_eval \
--device "gpu"
)",
                                            "PROGRAM", app("pretrain"));
  const CommandResult result = run_command("cd " + dir_.path().string() + script);
  const std::string log = result.out + result.err;
  ASSERT_EQ(result.code, 0) << log;
  EXPECT_NE(log.find("\"2--dataloader_num_workers\" was read as two words"), std::string::npos) << log;
  EXPECT_NE(log.find("TensorBoard's files are written in its place"), std::string::npos) << log;
  EXPECT_TRUE(fs::exists(dir_ / "output/llama_hybid/iter_0000003"));
  EXPECT_TRUE(fs::exists(dir_ / "output/llama_hybid/iter_0000006"));
  EXPECT_TRUE(fs::exists(dir_ / "output/llama_hybid/runs"));
  for (const char* rank : {"0", "1"})
    EXPECT_NE(file("output/llama_hybid_log/workerlog." + std::string(rank)).find("lm loss"),
              std::string::npos);
  // The run starts from the model's own weights, so the first loss must differ from ln(vocabulary), the loss
  // of random weights.
  const CommandResult one = pretrain(
      "--split 949,50,1 --fp16 --scale_loss 1024 --continue_training 1 --recompute 1 --output_dir one");
  ASSERT_EQ(one.code, 0) << one.err;
  const auto losses = numbers(log, "lm loss: "), want = numbers(one.out + one.err, "lm loss: ");
  ASSERT_EQ(losses.size(), want.size());
  ASSERT_EQ(want.size(), 3u);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(losses[i] / want[i], 1, 1e-3) << i;  // fp16's rounding
}

// llm/llama/run_trainer_tp4pp2.sh as it is, for two tensor ranks in place of four, and with fewer steps.
TEST_F(PaddleApp, RunsTheScriptOfTensorsAndAPipeline) {
  SKIP_WITHOUT_GLOO();
  const std::string script = test::replaced(R"(
unset CUDA_VISIBLE_DEVICES
task_name="llama_hybid"
rm -rf output/$task_name/
rm -rf "output/$task_name""_log"
PYTHONPATH=../../:$PYTHONPATH  \
PROGRAM \
    --gpus "0,1,2,3" \
    --log_dir "output/$task_name""_log" \
    --model_type "llama" \
    --model_name_or_path "facebook/llama-7b" \
    --tokenizer_name_or_path "facebook/llama-7b" \
    --input_dir "./data" \
    --output_dir "output/$task_name" \
    --split 949,50,1 \
    --max_seq_length 16 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 4 \
    --per_device_eval_batch_size 4 \
    --use_flash_attention 1 \
    --use_fused_rms_norm 0 \
    --fp16  \
    --fp16_opt_level "O2"  \
    --scale_loss 512 \
    --tensor_parallel_degree 2 \
    --pipeline_parallel_degree 2 \
    --virtual_pp_degree 1 \
    --sequence_parallel 0 \
    --learning_rate 0.00001 \
    --min_learning_rate 0.000001 \
    --max_steps 2 \
    --save_steps 5000 \
    --weight_decay 0.01 \
    --warmup_ratio 0.01 \
    --max_grad_norm 1.0 \
    --logging_steps 1 \
    --dataloader_num_workers 1 \
    --eval_steps 1000 \
    --report_to "visualdl" \
    --sharding "stage1" \
    --disable_tqdm true \
    --continue_training 1 \
    --recompute 0 \
    --recompute_granularity full \
    --do_train \
    --do_eval \
    --device "gpu"
)",
                                            "PROGRAM", app("pretrain"));
  const CommandResult result = run_command("cd " + dir_.path().string() + script);
  ASSERT_EQ(result.code, 0) << result.all();
  for (const char* named : {"virtual_pp_degree", "--recompute-granularity with --recompute false"})
    EXPECT_NE(result.all().find(named), std::string::npos) << named << result.all();
  EXPECT_TRUE(test::Pattern("iteration +2/ +2 .*lm loss: [0-9].*loss scale: 512")
                  .is_in(file("output/llama_hybid_log/workerlog.3")))
      << file("output/llama_hybid_log/workerlog.3");
}

TEST_F(PaddleApp, BeginsWithTheModelsWeightsOrRandomOnes) {
  const CommandResult random =
      pretrain("--output_dir a --max_steps 1 --logging_steps 1 --continue_training 0");
  ASSERT_EQ(random.code, 0) << random.err;
  const std::string log = random.out + random.err;
  EXPECT_NE(log.find("only the shape of"), std::string::npos) << log;
  const Json config = Json::load(dir_ / "facebook/llama-7b/config.json");
  EXPECT_NEAR(numbers(log, "lm loss: ").at(0), std::log(config["vocab_size"].as_double()), 0.1) << log;
  const CommandResult model =
      pretrain("--output_dir b --max_steps 1 --logging_steps 1 --continue_training 1");
  ASSERT_EQ(model.code, 0) << model.err;
  EXPECT_GT(std::abs(numbers(model.out + model.err, "lm loss: ").at(0) - numbers(log, "lm loss: ").at(0)),
            0.05);
}

TEST_F(PaddleApp, ResumesFromItsOutputFolderUnlessToldToOverwriteIt) {
  ASSERT_EQ(pretrain("--output_dir whole --log-json whole.jsonl").code, 0);
  ASSERT_EQ(pretrain("--output_dir out --exit-interval 3 --log-json a.jsonl").code, 0);
  const CommandResult second = pretrain("--output_dir out --log-json b.jsonl");
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE((second.out + second.err).find("resuming from out"), std::string::npos) << second.err;
  const auto rest = lines("b.jsonl", "train"), whole = lines("whole.jsonl", "train");
  ASSERT_EQ(rest.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(rest[i]["loss"].dump(), whole[i + 3]["loss"].dump()) << i;
  ASSERT_EQ(pretrain("--output_dir out --overwrite_output_dir --log-json c.jsonl").code, 0);
  EXPECT_EQ(lines("c.jsonl", "train").size(), 6u);
}

// A run that resumes by itself compares its options with the checkpoint's as one with --load does.
TEST_F(PaddleApp, ComparesWhatItResumesFromByItself) {
  ASSERT_EQ(pretrain("--output_dir out --exit-interval 3").code, 0);
  for (const std::string from : {"--output_dir out", "--load out --save out"}) {
    const CommandResult model = pretrain(from + " --num-layers 1");
    EXPECT_EQ(model.code, 64) << from << model.all();
    EXPECT_NE(model.all().find(
                  "out/iter_0000003: the checkpoint belongs to another model; give its options, or " +
                  std::string(from.starts_with("--load") ? "another --load:"
                                                         : "another --output-dir, or "
                                                           "--overwrite-output-dir to replace that run:")),
              std::string::npos)
        << from << model.all();
    EXPECT_NE(model.all().find("--num-layers: checkpoint 2, command line 1"), std::string::npos)
        << model.all();
    const CommandResult rate = pretrain(from + " --learning_rate 0.002");
    EXPECT_EQ(rate.code, 64) << from << rate.all();
    EXPECT_NE(rate.all().find("another learning rate schedule"), std::string::npos) << from << rate.all();
  }
  const CommandResult order = pretrain("--output_dir out --seed 9");
  EXPECT_EQ(order.code, 0) << order.all();
  EXPECT_NE(order.all().find("--seed is 9, but was "), std::string::npos) << order.all();
}

// The folder's checkpoints have PaddleNLP's names. A run resumes from checkpoints that we wrote; for any
// others, the user must decide.
TEST_F(PaddleApp, KnowsCheckpointsByTheirPaddleNames) {
  ASSERT_EQ(pretrain("--output_dir whole --log-json whole.jsonl").code, 0);  // saves at steps 3 and 6
  fs::create_directories(dir_ / "out");
  fs::rename(dir_ / "whole/iter_0000003", dir_ / "out/checkpoint-3");
  fs::create_directories(dir_ / "out/checkpoint-20");  // left by a save that was killed
  fs::create_directories(dir_ / "out/checkpoint-1");
  write_file(dir_ / "out/checkpoint-1/config.json", "{}");
  const CommandResult rest = pretrain("--output_dir out --log-json rest.jsonl");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE((rest.out + rest.err).find("resuming from out/checkpoint-3"), std::string::npos) << rest.err;
  const auto after = lines("rest.jsonl", "train"), all = lines("whole.jsonl", "train");
  ASSERT_EQ(after.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(after[i]["loss"].dump(), all[i + 3]["loss"].dump()) << i;
  fs::create_directories(dir_ / "theirs");
  fs::copy(dir_ / "facebook/llama-7b", dir_ / "theirs/checkpoint-10");
  const CommandResult refused = pretrain("--output_dir theirs");
  EXPECT_EQ(refused.code, 64) << refused.err;
  EXPECT_NE(refused.err.find("give --resume-from-checkpoint theirs/checkpoint-10"), std::string::npos)
      << refused.err;
  EXPECT_EQ(pretrain("--output_dir theirs --resume_from_checkpoint theirs/checkpoint-10 --max_steps 1").code,
            0);
  EXPECT_EQ(pretrain("--output_dir theirs --overwrite_output_dir --max_steps 1").code, 0);
}

// With --use-checkpoint-args, a run takes its sizes from the checkpoint that PaddleNLP's options name, as
// with --load. A run that only evaluates takes no training steps, whatever number of epochs is given.
TEST_F(PaddleApp, TakesTheSizesOfTheCheckpointThatItsNamesGive) {
  ASSERT_EQ(pretrain("--output_dir out").code, 0);
  const std::string sizeless = test::replaced(kLine, "--model_name_or_path facebook/llama-7b ", "");
  for (const char* from : {"--output_dir out", "--resume_from_checkpoint out --output_dir other"}) {
    const CommandResult result = run(sizeless + "--use-checkpoint-args " + from);
    EXPECT_EQ(result.code, 0) << from << result.all();
  }
}

TEST_F(PaddleApp, EvaluatesOnALineOfEpochs) {
  const std::string line = test::replaced(kLine, "--max_steps 6|--do_train --do_eval", "");
  const CommandResult result =
      run(line + "--do_train 0 --do_eval --num_train_epochs 1 --continue_training --output_dir out");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.all().find("on test set | "), std::string::npos) << result.all();
}

TEST_F(PaddleApp, PrintsPaddlesLines) {
  const CommandResult result = pretrain("--output_dir out --num_train_epochs 2 --eval_steps 1000");
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("--num-epochs 2 and --train-iters 6 contradict each other"), std::string::npos);
  const CommandResult good = pretrain("--output_dir out --log-json l.jsonl");
  ASSERT_EQ(good.code, 0) << good.err;
  const std::string log = good.out + good.err;
  const auto train = lines("l.jsonl", "train");
  const test::Pattern line(
      "\\[\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d,\\d{3}\\] \\[    INFO\\] - loss: ([0-9.]+), "
      "learning_rate: [0-9.e-]+, global_step: (\\d+), interval_runtime: [0-9.]+, "
      "interval_samples_per_second: [0-9.]+, interval_steps_per_second: [0-9.]+, epoch: [0-9.]+");
  const std::vector<test::Pattern::Match> found = line.all_in(log);
  ASSERT_EQ(found.size(), 3u) << log;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i][2], std::to_string(2 * i + 2));
    EXPECT_NEAR(*parse_double(found[i][1]),
                (train[2 * i]["loss"].as_double() + train[2 * i + 1]["loss"].as_double()) / 2, 1e-7);
  }
  EXPECT_EQ(numbers(log, "eval_loss: ").size(), 3u) << log;  // at steps 3 and 6, and at the end
}

// PaddleNLP counts --eval_iters in batches of --per_device_eval_batch_size samples per rank, we count in
// steps. The same samples must give the same loss.
TEST_F(PaddleApp, EvaluatesAsManySamplesAsItsBatchesHave) {
  const auto evaluated = [&](const std::string& options) {
    const CommandResult result = pretrain("--max_steps 3 --output_dir " + options);
    EXPECT_EQ(result.code, 0) << result.err;
    const auto losses = numbers(result.out + result.err, "eval_loss: ");
    return std::pair(losses.empty() ? 0 : losses.front(), result.out + result.err);
  };
  // A step takes 2 samples. So 3 batches of 4 samples are 6 steps, and 3 batches of 3 samples are 5 steps: 9
  // samples, rounded up to 10.
  const auto plain = evaluated("a --eval_iters 6"),
             fours = evaluated("b --eval_iters 3 --per_device_eval_batch_size 4");
  EXPECT_EQ(fours.first, plain.first);
  EXPECT_NE(fours.first, evaluated("c --eval_iters 3").first);
  EXPECT_EQ(fours.second.find("an evaluation takes"), std::string::npos) << fours.second;
  const auto threes = evaluated("d --eval_iters 3 --per_device_eval_batch_size 3");
  EXPECT_NE(threes.second.find("an evaluation takes 5 global batches, 10 samples: --eval-iters 3 of "
                               "--per-device-eval-batch-size 3 on 1 ranks are 9"),
            std::string::npos)
      << threes.second;
  EXPECT_EQ(threes.first, evaluated("e --eval_iters 5").first);
}

// llm/config/llama/pretrain_argument.json of PaddleNLP, with the paths, lengths and steps of a test.
TEST_F(PaddleApp, TakesThePublishedFileAsAWord) {
  write_file(dir_ / "pretrain.json", R"({"model_name_or_path": "facebook/llama-7b",
    "tokenizer_name_or_path": "facebook/llama-7b", "input_dir": "./data", "output_dir": "out",
    "split": "8,1,1",
    "per_device_train_batch_size": 1, "gradient_accumulation_steps": 2, "per_device_eval_batch_size": 2,
    "tensor_parallel_degree": 2, "pipeline_parallel_degree": 1, "sharding": "stage2", "virtual_pp_degree": 1,
    "sequence_parallel": 0, "use_flash_attention": true, "use_fused_rms_norm": true, "use_fused_rope": true,
    "max_seq_length": 16, "learning_rate": 3e-05, "min_learning_rate": 3e-06, "warmup_steps": 2,
    "logging_steps": 1, "max_steps": 4, "save_steps": 5000, "eval_steps": 1000, "eval_iters": 1,
    "weight_decay": 0.01, "bf16": true, "fp16_opt_level": "O2", "warmup_ratio": 0.01, "max_grad_norm": 1.0,
    "dataloader_num_workers": 1, "continue_training": 0, "do_train": true, "do_eval": true,
    "do_predict": true, "disable_tqdm": true, "recompute": false, "distributed_dataloader": 1,
    "recompute_granularity": "full", "unified_checkpoint": true, "save_total_limit": 2})");
  const CommandResult result = run("./pretrain.json --nproc 2 --log-json log.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  for (const char* named : {"use_fused_rope", "unified_checkpoint", "--warmup-ratio with --warmup-steps",
                            "--recompute-granularity with --recompute false"})
    EXPECT_NE(result.all().find(named), std::string::npos) << named << result.all();
  // The warm-up of two steps is obeyed: the second step learns at half the rate.
  const std::vector<Json> steps = log_lines(dir_ / "log.jsonl", "train");
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_NEAR(steps[0]["lr"].as_double(), 1.5e-5, 1e-9);
}

TEST_F(PaddleApp, IgnoresALossScaleWithoutFp16) {
  const CommandResult result = pretrain("--output_dir out --max_steps 1 --scale_loss 1024");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.all().find("--scale-loss without --fp16"), std::string::npos) << result.all();
}

// scale_loss of PaddleNLP's TrainingArguments is 32768; one overflow does not lower it yet.
TEST_F(PaddleApp, BeginsFp16AtPaddlesLossScale) {
  for (const auto& [given, scale] :
       {std::pair{"", 32768.0}, {"--scale_loss 1024", 1024.0}, {"--loss-scale 512", 512.0}}) {
    fs::remove(dir_ / "log.jsonl");  // to which a run would append
    const CommandResult result = pretrain(
        concat("--overwrite_output_dir --output_dir out --max_steps 1 --fp16 --log-json log.jsonl ", given));
    ASSERT_EQ(result.code, 0) << result.all();
    EXPECT_EQ(log_lines(dir_ / "log.jsonl", "train").at(0)["loss_scale"].as_double(), scale);
  }
}

TEST_F(PaddleApp, EvaluatesOnlyWhenAskedTo) {
  const CommandResult result =
      run(test::replaced(kLine, "--do_eval ", "") + "--output_dir out --report_to tensorboard");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ((result.out + result.err).find("validation loss"), std::string::npos) << result.err;
  EXPECT_TRUE(fs::exists(dir_ / "out/runs"));
}

TEST_F(PaddleApp, SaysWhatIsNotThere) {
  const auto refused = [&](const std::string& options, int code, const std::string& part) {
    const CommandResult result = pretrain(options);
    EXPECT_EQ(result.code, code) << options << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  refused("--model_name_or_path facebook/llama-65b", 66, "`hf download facebook/llama-65b`");
  refused("--input_dir none", 66, "none: is not a folder");
  refused("--output_dir a --resume_from_checkpoint nope", 66,
          "--resume-from-checkpoint: nope is not there: it names no checkpoint; give the folder of one");
  refused("--report_to wandb", 64, "wandb sync");
  fs::create_directories(dir_ / "empty");
  refused("--input_dir empty", 66, "empty: holds no dataset");
  fs::copy_file(dir_ / "data/c.idx", dir_ / "data/d.idx");
  refused("--output_dir out", 64, "holds 2 datasets");
  refused("--input_dir data --save x --output_dir y", 64, "--output-dir y and --save mean the same");
}

// All contradictions must be reported at once. (An earlier version reported only the first.)
TEST_F(PaddleApp, SaysAllThatIsWrongAtOnce) {
  for (const char* planned : {"", " --max-global-batch-size 8"}) {
    const CommandResult result = pretrain(
        "--output_dir a --save b --input_dir none --data_path c --resume_from_checkpoint d --load e "
        "--lr abc" +
        std::string(planned));
    EXPECT_EQ(result.code, 64) << result.err;
    for (const char* part :
         {"--output-dir a and --save mean the same; give one of them",
          "--input-dir none and --data-path mean the same",
          "--resume-from-checkpoint d and --load mean the same", "--lr \"abc\": wanted a number"})
      EXPECT_NE(result.err.find(part), std::string::npos) << planned << result.err;
  }
}

}  // namespace
}  // namespace megalith::test
