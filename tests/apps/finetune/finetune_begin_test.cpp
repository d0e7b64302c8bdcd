// Tests from which model, adapter or checkpoint megalith-finetune begins, how its answers end, and which
// options need not be repeated.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/apps/finetune/finetune_app.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const std::string kSmall = "--num_train_epochs 2 --per_device_train_batch_size 4 ";
const std::string kLora = kSmall + "--lora True --r 4 --learning_rate 2e-2 ";

class FinetuneBegin : public FinetuneApp {
 protected:
  void expect_refused(const CommandResult& result, const std::string& why) const {
    EXPECT_EQ(result.code, 64) << result.all();
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  }
  static void expect_said(const CommandResult& result, const std::string& text) {
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_NE(result.all().find(text), std::string::npos) << result.all();
  }
  std::vector<Json> predictions(const std::string& folder) const {
    return json_lines(read_file(dir_ / (folder + "/generated_predictions.jsonl")), folder);
  }
};

// torch's GradScaler begins at 2^16, PaddleNLP's TrainingArguments have scale_loss 2^15. One overflow lowers
// neither yet (--hysteresis 2). The gradients of this model fit fp16 at 2^13: from Megatron-LM's 2^32 on, all
// of the first 15 steps would be skipped.
TEST_F(FinetuneBegin, ScalesTheLossOfFp16AsTheToolWhoseOptionsAreGiven) {
  const auto steps = [&](const std::string& options) {
    fs::remove(dir_ / "log.jsonl");  // to which a run would append
    const CommandResult result =
        run("--threads 1 --max-steps 15 --micro-batch-size 1 --fp16 --log-json log.jsonl --lora "
            "--overwrite-output-dir " +
            options);
    EXPECT_EQ(result.code, 0) << result.all();
    return log_lines(dir_ / "log.jsonl", "train");
  };
  const std::vector<Json> ours = steps("--model model --data data --output-dir out");
  EXPECT_EQ(ours.at(0)["loss_scale"].as_double(), 65536);
  const auto skipped =
      std::count_if(ours.begin(), ours.end(), [](const Json& step) { return step["skipped"] == Json(true); });
  EXPECT_LE(skipped, 5);
  EXPECT_EQ(ours.back()["skipped"], Json(false));
  const std::string paddle = "--model_name_or_path model --dataset_name_or_path data --output_dir out ";
  EXPECT_EQ(steps(paddle).at(0)["loss_scale"].as_double(), 32768);
  EXPECT_EQ(steps(paddle + "--scale_loss 1024").at(0)["loss_scale"].as_double(), 1024);
  for (const std::string& options : {std::string("--model model --data data --output-dir out "), paddle})
    EXPECT_EQ(steps(options + "--loss-scale 512").at(0)["loss_scale"].as_double(), 512) << options;
}

TEST_F(FinetuneBegin, ContinuesWithAPrefixAsAPrefix) {
  const std::string prefix = kSmall + "--learning_rate 3e-2 --prefix-tuning --num-prefix-tokens 5 ";
  ASSERT_EQ(tune(prefix + "--log-json first.jsonl").code, 0);
  const double first = losses("first.jsonl").front();
  for (const std::string said : {"", "--finetuning-type prefix ", "--prefix-tuning "}) {
    const CommandResult more = tune(kSmall + said + "--adapter out --log-json more.jsonl", "more");
    expect_said(more, "training a prefix of 5 positions");
    EXPECT_LT(losses("more.jsonl").front(), first);
    const Json config = Json::load(dir_ / "more/adapter_config.json");
    EXPECT_EQ(config["peft_type"], Json("PREFIX_TUNING"));
    EXPECT_EQ(config["num_virtual_tokens"], Json(5));
    fs::remove_all(dir_ / "more");
    fs::remove(dir_ / "more.jsonl");
  }
  expect_refused(tune("--lora --adapter out", "x"), "--adapter out is a prefix, but the options train LoRA");
  expect_refused(tune("--adapter out --num-prefix-tokens 6", "x"),
                 "--num-prefix-tokens 6: --adapter out has 5; leave it out");
  expect_refused(tune("--finetuning-type full --adapter out", "x"),
                 "--finetuning-type full and --adapter out contradict each other");
}

// In axolotl's files "adapter: lora" is the method, but here it is the folder.
TEST_F(FinetuneBegin, TakesAnAdapterFromAFolderNamedAsTheMethod) {
  ASSERT_EQ(tune(kLora, "lora").code, 0);
  expect_said(tune(kSmall + "--lora --adapter lora", "more"), "training an adapter of rank 4 ");
}

// The numbers that peft's print_trainable_parameters() has: in each of two layers r (in + out) of c_attn,
// c_proj, c_fc and c_proj, beside the 16,704 parameters of the model.
TEST_F(FinetuneBegin, SaysHowManyParametersAreTrained) {
  expect_said(tune(kSmall + "--lora --lora-rank 2", "two"), ": 768 of 17,472 parameters (4.396 %)");
  expect_said(tune(kSmall + "--prefix-tuning --num-prefix-tokens 5", "prefix"),
              "a prefix of 5 positions: 320 of 17,024 parameters (1.880 %)");
}

TEST_F(FinetuneBegin, WhatContradictsTheMethodIsRefusedByName) {
  expect_refused(tune("--finetuning-type prefix --lora"),
                 "--finetuning-type prefix and --lora contradict each other; give one of them");
  expect_refused(tune("--finetuning-type full --lora"), "--finetuning-type full and --lora contradict");
  expect_refused(tune("--finetuning-type lora --prefix-tuning"),
                 "--finetuning-type lora and --prefix-tuning contradict");
  expect_refused(tune("--r 8"), "--lora-rank needs --lora");
  expect_refused(tune("--prefix-tuning --target-modules c_fc"), "--target-modules needs --lora");
  expect_refused(tune("--lora --num-prefix-tokens 8"), "--num-prefix-tokens needs --prefix-tuning");
}

// Training continues an adapter with its own settings. Options that repeat them must agree, except for
// dropout.
TEST_F(FinetuneBegin, TakesTheSettingsOfAnAdapter) {
  ASSERT_EQ(tune(kLora + "--lora-alpha 12").code, 0);
  const CommandResult more =
      tune(kSmall + "--adapter out --lora-rank 4 --lora-alpha 12 --lora-dropout 0.25", "more");
  expect_said(more, "training an adapter of rank 4");
  const Json config = Json::load(dir_ / "more/adapter_config.json");
  EXPECT_DOUBLE_EQ(config["lora_alpha"].as_double(), 12);
  EXPECT_DOUBLE_EQ(config["lora_dropout"].as_double(), 0.25);
  expect_refused(tune("--adapter out --lora-rank 8", "x"),
                 "--lora-rank 8: the adapter out has 4; leave it out");
  expect_refused(tune("--adapter out --lora-alpha 8", "x"), "--lora-alpha 8: the adapter out has 12");
  expect_refused(tune("--adapter out --use-rslora", "x"), "--use-rslora: the adapter out has alpha / rank");
  expect_refused(tune("--adapter out --target-modules c_fc", "x"),
                 "--target-modules c_fc: the adapter out has");
  expect_refused(tune("--adapter out --prefix-tuning", "x"), "--adapter out is a LoRA adapter");
  // 1.0 / 49 * 49 is not exactly 1. The alpha that is recovered from the adapter's alpha / rank must still
  // count as equal to --lora-alpha 1.
  ASSERT_EQ(tune(kLora + "--r 49 --lora-alpha 1", "odd").code, 0);
  const CommandResult same = tune(kSmall + "--adapter odd --lora-rank 49 --lora-alpha 1", "odd-more");
  EXPECT_EQ(same.code, 0) << same.all();
  EXPECT_EQ(Json::load(dir_ / "odd-more/adapter_config.json")["lora_alpha"].as_double(), 1);
}

// Training on preferences switches off the adapter's dropout, since it needs exact probabilities of the
// answers.
TEST_F(FinetuneBegin, LearnsPreferencesWithoutTheDropoutOfAnAdapter) {
  ASSERT_EQ(tune(kLora + "--lora-dropout 0.5").code, 0);
  write_pairs();
  const std::string pairs = kSmall + "--dpo --adapter out ";
  ASSERT_EQ(tune(pairs + "--log-json as-made.jsonl", "as-made").code, 0);
  EXPECT_EQ(Json::load(dir_ / "as-made/adapter_config.json")["lora_dropout"].as_double(), 0);
  Json config = Json::load(dir_ / "out/adapter_config.json");
  ASSERT_EQ(config["lora_dropout"].as_double(), 0.5);
  config.set("lora_dropout", 0.0);
  write_file(dir_ / "out/adapter_config.json", config.dump());
  ASSERT_EQ(tune(pairs + "--log-json without.jsonl", "without").code, 0);
  EXPECT_EQ(losses("as-made.jsonl"), losses("without.jsonl"));
}

// Tunes the same model from a Hugging Face folder, a checkpoint of ours and a checkpoint of Megatron-LM.
TEST_F(FinetuneBegin, TakesEachKindOfModel) {
  ASSERT_EQ(tune(kLora + "--log-json hf.jsonl", "hf-out").code, 0);
  const std::vector<double> wanted = losses("hf.jsonl");
  ASSERT_EQ(wanted.size(), 10U);
  for (const std::string kind : {"megalith", "megatron"}) {
    const CommandResult converted = run_command("cd " + dir_.path().string() + " && " + app("convert") +
                                                " model --to " + kind + " --output " + kind);
    ASSERT_EQ(converted.code, 0) << converted.all();
    const CommandResult result = run("--model " + kind + " --data data --threads 1 --output-dir of-" + kind +
                                     " " + kLora + "--log-json " + kind + ".jsonl");
    ASSERT_EQ(result.code, 0) << result.all();
    EXPECT_EQ(losses(kind + ".jsonl"), wanted) << kind;
  }
}

TEST_F(FinetuneBegin, PrintsPaddlesLinesWhenAskedTo) {
  const CommandResult result = tune(kLora + "--log-style paddle --logging_steps 5");
  for (const char* step : {"global_step: 5", "global_step: 10", "loss: ", "using world size: 1"})
    expect_said(result, step);
}

// A run resumes from its output folder if it is the same run. Any other is refused, and the folder stays as
// it is; another path to the same files makes no other run.
TEST_F(FinetuneBegin, ResumesOnlyTheSameRun) {
  const std::string own = "--lora --r 2 --lora_alpha 4 --lr 0.01 ";
  ASSERT_EQ(tune(own + "--max-steps 2 --lr_decay_iters 2").code, 0);
  ASSERT_EQ(tune(own + "--max-steps 2 --seed 5", "adapter").code, 0);
  fs::copy(dir_ / "model", dir_ / "model2");
  fs::copy(dir_ / "data", dir_ / "data2");
  change_weights("model2");
  std::string records = read_file(dir_ / "data2/train.json");
  records.replace(records.find(" 1\""), 3, " 3\"");
  write_file(dir_ / "data2/train.json", records);
  const auto given = [&](const std::string& model, const std::string& data, const std::string& options) {
    return run("--model_name_or_path " + model + " --dataset_name_or_path " + data +
               " --threads 1 --output_dir out --lr 0.01 --lr_decay_iters 2 --max-steps 3 " + options);
  };
  const std::string before = read_file(dir_ / "out/latest_checkpointed_iteration.txt");
  const std::string lora = "--lora --r 2 --lora_alpha 4 ", method = "another method, or other settings of it";
  struct Case {
    const char *model, *data;
    std::string options, part;
  };
  for (const auto& [model, data, options, part] :
       {Case{"model2", "data", lora, "with another model (--model); "},
        {"model", "data2", lora, "with other records to train on (--data); "},
        {"model", "data", lora + "--max-samples 9", "with other records to train on (--data); "},
        {"model", "data", lora + "--packing", "with other records to train on (--data); "},
        {"model2", "data2", lora, "with another model (--model) and other records to train on (--data); "},
        {"model", "data", "--adapter adapter", "with another adapter to begin with (--adapter)"},
        {"model", "data", "--lora --r 2 --lora_alpha 5", "with " + method + "; "},
        {"model", "data", "--lora --r 4 --lora_alpha 4", "with " + method + "; "},
        {"model", "data", lora + "--rslora", "with " + method + "; "},
        {"model", "data", lora + "--qlora", "with " + method + "; "},
        {"model", "data", lora + "--target-modules c_attn", "with " + method + "; "},
        {"model", "data", "--prefix-tuning --num-prefix-tokens 4", "with " + method + "; "},
        {"model", "data", "", "with " + method + "; "}}) {
    const CommandResult refused = given(model, data, options);
    EXPECT_EQ(refused.code, 64) << options << ": " << refused.all();
    for (const std::string& said :
         {std::string("out/iter_0000002: another run saved it, "), part,
          std::string("give another --output-dir, or --overwrite-output-dir to replace that run")})
      EXPECT_NE(refused.all().find(said), std::string::npos) << options << ": " << refused.all();
    EXPECT_EQ(read_file(dir_ / "out/latest_checkpointed_iteration.txt"), before) << options;
  }
  // The user may continue on other data by naming the checkpoint.
  const CommandResult named = given("model", "data2", lora + "--resume_from_checkpoint out/iter_0000002");
  EXPECT_EQ(named.code, 0) << named.all();
  EXPECT_NE(named.all().find("the run that saved it has other records to train on"), std::string::npos)
      << named.all();
  fs::rename(dir_ / "model", dir_ / "moved");
  fs::rename(dir_ / "data", dir_ / "records");
  ASSERT_EQ(given("moved", "records", lora + "--overwrite_output_dir").code, 0);
  const CommandResult more = given("moved", "records", lora + "--max-steps 4 --log-json more.jsonl");
  EXPECT_EQ(more.code, 0) << more.all();
  EXPECT_EQ(losses("more.jsonl").size(), 1U);
  const CommandResult other = given("model2", "data2", "--overwrite_output_dir");
  EXPECT_EQ(other.code, 0) << other.all();
  EXPECT_FALSE(file_exists(dir_ / "out/iter_0000004"));
  EXPECT_FALSE(file_exists(dir_ / "out/adapter_model.safetensors"));  // of the run that was replaced
}

// A stopped run says how to resume. By default the same command resumes from the output folder; with
// --overwrite_output_dir it would start over.
TEST_F(FinetuneBegin, SaysWhatAStoppedRunIsGoneOnWith) {
  const auto stopped = [&](const std::string& options) {
    return run_command("cd " + dir_.path().string() + " && export OMP_WAIT_POLICY=passive; rm -f s.jsonl; (" +
                       app("finetune") +
                       " --model_name_or_path model --dataset_name_or_path data --threads 1 " +
                       "--output_dir out --num_train_epochs 10000 --log-json s.jsonl " + options +
                       " & pid=$!; until grep -q train s.jsonl 2>/dev/null || ! kill -0 $pid; do sleep 0.05; "
                       "done; kill -TERM $pid; wait $pid)");
  };
  const CommandResult plain = stopped("");
  EXPECT_EQ(plain.code, 75) << plain.all();
  EXPECT_NE(plain.all().find("saved; run the same command to resume"), std::string::npos) << plain.all();
  std::filesystem::copy(dir_ / "out", dir_ / "earlier", std::filesystem::copy_options::recursive);
  const CommandResult anew = stopped("--overwrite_output_dir");
  EXPECT_NE(
      anew.all().find("saved; to resume, give --no-overwrite-output-dir: the same command would begin again"),
      std::string::npos)
      << anew.all();
  const CommandResult rest = stopped("--overwrite_output_dir --resume_from_checkpoint earlier");
  EXPECT_NE(
      rest.all().find("saved; to resume, give --resume-from-checkpoint out: the same command would begin"),
      std::string::npos)
      << rest.all();
}

TEST_F(FinetuneBegin, WithoutTrainingEvaluatesWhatIsNamed) {
  ASSERT_EQ(tune(kLora + "--log-json tuned.jsonl").code, 0);
  const double tuned = last_evaluation("tuned.jsonl");
  ASSERT_EQ(tune("--no-do-train --log-json base.jsonl", "fresh").code, 0);
  const double base = last_evaluation("base.jsonl");
  ASSERT_LT(tuned, 0.9 * base);
  const std::string adapter = read_file(dir_ / "out/adapter_model.safetensors"),
                    tracker = read_file(dir_ / "out/latest_checkpointed_iteration.txt");

  const CommandResult alone = tune("--no-do-train --lora --r 4 --log-json alone.jsonl");
  expect_said(alone,
              "nothing is trained (--no-do-train): model is used unchanged; the checkpoints in out are not "
              "(--resume-from-checkpoint out)");
  EXPECT_EQ(last_evaluation("alone.jsonl"), base);
  EXPECT_TRUE(losses("alone.jsonl").empty());
  const CommandResult adapted = tune("--no-do-train --adapter out --log-json adapted.jsonl");
  expect_said(adapted, "model with the adapter out is used unchanged");
  EXPECT_NEAR(last_evaluation("adapted.jsonl"), tuned, 1e-6);
  const CommandResult resumed = tune(
      "--no-do-train --lora --r 4 --resume_from_checkpoint out --log-json resumed.jsonl "
      "--do_generation --max-new-tokens 2");
  expect_said(resumed, "nothing is trained (--no-do-train): the checkpoint in out is used unchanged");
  EXPECT_NEAR(last_evaluation("resumed.jsonl"), tuned, 1e-6);
  EXPECT_TRUE(losses("resumed.jsonl").empty());
  EXPECT_EQ(predictions("out").size(), 4U);
  // Without training, the files of the earlier run are unchanged.
  EXPECT_EQ(read_file(dir_ / "out/adapter_model.safetensors"), adapter);
  EXPECT_EQ(read_file(dir_ / "out/latest_checkpointed_iteration.txt"), tracker);

  expect_refused(tune("--no-do-train --no-do-eval"),
                 "--no-do-train and --no-do-eval leave nothing to do; leave out one of them, or give "
                 "--do-generation");
  expect_refused(tune("--eval-only"), "--eval-only is not supported; give --no-do-train");
  EXPECT_EQ(tune("--no-do-train --resume_from_checkpoint nowhere").code, 66);
  fs::remove(dir_ / "data/dev.json");
  expect_refused(tune("--no-do-train"),
                 "--no-do-train leaves nothing to do: there are no records to evaluate on; give --eval-data");
}

TEST_F(FinetuneBegin, WithoutTrainingNeedsAModelAndAFileOnly) {
  const std::string program = "cd " + dir_.path().string() + " && " + app("finetune") + " --model model ";
  const CommandResult alone =
      run_command(program + "--no-do-train --eval-data data/dev.json --log-json alone.jsonl");
  expect_said(alone, "nothing is trained (--no-do-train): model is used unchanged");
  ASSERT_EQ(tune("--no-do-train --log-json base.jsonl", "fresh").code, 0);
  EXPECT_NEAR(last_evaluation("alone.jsonl"), last_evaluation("base.jsonl"), 1e-6);
  expect_refused(run_command(program + "--data data"), "--output-dir (--save) is missing");
  expect_refused(run_command(program + "--no-do-train --do-generation --eval-data data/dev.json"),
                 "--output-dir (--save) is missing");
}

TEST_F(FinetuneBegin, WithoutTrainingNeedsNoRecordsToTrainOn) {
  const std::string alone = "--no-do-train --per_device_train_batch_size 4 ";
  ASSERT_EQ(tune(alone + "--log-json all.jsonl", "fresh").code, 0);
  const double wanted = last_evaluation("all.jsonl");
  const std::string records = read_file(dir_ / "data/train.json");
  write_file(dir_ / "data/train.json", "no record");
  const CommandResult unread = tune(alone + "--log-json unread.jsonl", "fresh");
  ASSERT_EQ(unread.code, 0) << unread.all();
  EXPECT_EQ(unread.all().find("train.json"), std::string::npos) << unread.all();
  EXPECT_EQ(last_evaluation("unread.jsonl"), wanted);
  fs::remove(dir_ / "data/train.json");
  for (const char* layout : {"", "--packing ", "--nproc 2 --per_device_train_batch_size 2 "}) {
    const CommandResult none = tune(alone + layout + "--log-json none.jsonl", "fresh");
    ASSERT_EQ(none.code, 0) << layout << none.all();
    EXPECT_NEAR(last_evaluation("none.jsonl"), wanted, 1e-6) << layout;
    fs::remove(dir_ / "none.jsonl");
  }
  ASSERT_EQ(
      tune(alone + "--dataset_name_or_path nowhere --eval-data data/dev.json --log-json named.jsonl", "fresh")
          .code,
      0);
  EXPECT_EQ(last_evaluation("named.jsonl"), wanted);
  const CommandResult nowhere = tune(alone + "--dataset_name_or_path nowhere", "fresh");
  EXPECT_EQ(nowhere.code, 66);
  EXPECT_NE(nowhere.err.find("nowhere: no such file or folder; give --data DIR with dev.json"),
            std::string::npos)
      << nowhere.err;
  expect_said(tune(alone + "--log-style ddp-tutorial", "fresh"), "Epoch 1 (Step 000000): Val loss ");
  expect_said(tune(alone + "--no-do-eval --do_generation --max-new-tokens 2", "fresh"), "answers: 4 records");
  // Without dev.json, --val-size takes some of the training records, so data/train.json is needed.
  fs::remove(dir_ / "data/dev.json");
  EXPECT_EQ(tune(alone + "--val-size 4", "fresh").code, 66);
  write_file(dir_ / "data/train.json", records);
  expect_said(tune(alone + "--val-size 4", "fresh"), "data/train.json, held out: 4 records");
}

// The best evaluation is the most accurate one: the losses of a rate that is far too great do not agree.
TEST_F(FinetuneBegin, ChoosesTheBestModelByAccuracy) {
  const std::string line =
      "--learning_rate 0.2 --num_train_epochs 20 --eval_steps 2 --load_best_model_at_end "
      "--early_stopping_patience 3 --metric_for_best_model accuracy --log-style paddle --log-json log.jsonl";
  const CommandResult result = tune(kLora + line);
  ASSERT_EQ(result.code, 0) << result.all();
  double best = -1;
  int64_t iteration = 0;
  for (const Json& evaluation : log_lines(dir_ / "log.jsonl", "valid"))
    if (const double accuracy = evaluation["accuracy"].as_double(); accuracy > best) {
      best = accuracy;
      iteration = evaluation["iteration"].as_int();
    }
  EXPECT_GT(best, 0);
  EXPECT_LE(best, 1);
  EXPECT_NE(result.all().find("evaluations were no better than the accuracy "), std::string::npos)
      << result.all();
  EXPECT_NE(result.all().find(", eval_accuracy: "), std::string::npos);
  EXPECT_NE(result.all().find(concat("of iteration ", iteration, " to out")), std::string::npos)
      << result.all();
  write_pairs();
  expect_refused(tune("--dpo --metric_for_best_model accuracy --load_best_model_at_end", "pairs"),
                 "does not learn; give eval_loss");
}

// No record is cut at the window of its model, and the layers see no further.
TEST_F(FinetuneBegin, TunesRecordsThatAreLongerThanAWindow) {
  fs::remove_all(dir_ / "model");
  fs::copy(test_data("parity/goldens/generate-llama"), dir_ / "model");
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  const std::string options = "--max-steps 4 --per-device-train-batch-size 2 --lr 0.001 --log-json ";
  ASSERT_EQ(tune(options + "whole.jsonl", "whole").code, 0);
  narrow_model(3);
  const CommandResult narrow = tune(options + "narrow.jsonl", "narrow");
  ASSERT_EQ(narrow.code, 0) << narrow.all();
  EXPECT_NE(narrow.all().find("0 answers and 0 prompts truncated"), std::string::npos) << narrow.all();
  EXPECT_NE(losses("narrow.jsonl"), losses("whole.jsonl"));
  const CommandResult prefix = tune("--prefix-tuning --num-prefix-tokens 2 " + options + "p.jsonl", "prefix");
  EXPECT_EQ(prefix.code, 64);
  EXPECT_NE(prefix.err.find("exceed the model's window of 3"), std::string::npos) << prefix.err;
  const CommandResult context = tune("--nproc 2 --context-parallel-size 2 " + options + "c.jsonl", "context");
  ASSERT_EQ(context.code, 0) << context.all();
  const auto one = losses("narrow.jsonl"), shared = losses("c.jsonl");
  ASSERT_EQ(shared.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(shared[i] / one[i], 1, 1e-5) << i;
}

TEST_F(FinetuneBegin, WithoutTrainingJudgesPairsAlone) {
  write_pairs();
  const std::string pairs = "--dpo --lora --r 4 --per_device_train_batch_size 2 ";
  ASSERT_EQ(tune(pairs + "--num_train_epochs 2 --learning_rate 2e-2 --log-json tuned.jsonl").code, 0);
  const double tuned = last_evaluation("tuned.jsonl");
  ASSERT_LT(tuned, 0.65);
  fs::remove(dir_ / "data/train.json");
  const CommandResult alone =
      tune(pairs + "--no-do-train --resume_from_checkpoint out --log-json alone.jsonl", "fresh");
  expect_said(alone, "reference: log probabilities of 12 answers");
  EXPECT_NEAR(last_evaluation("alone.jsonl"), tuned, 1e-6);
}

// A model may end its texts with another token than its tokenizer has. Full tuning must keep that token in
// the checkpoint, in the Hugging Face folder and in the run's own answers, as save_pretrained() does.
TEST_F(FinetuneBegin, AnswersEndAsTheModelSays) {
  constexpr int64_t kEnd = 5;
  const std::string generation =
      concat("{\"eos_token_id\": [", kEnd, ", 0], \"temperature\": 0.6, \"top_p\": 0.9}");
  write_file(dir_ / "model/generation_config.json", generation);
  const CommandResult result = tune(
      "--num_train_epochs 30 --per_device_train_batch_size 4 --learning_rate 5e-3 --eval-strategy no "
      "--do_generation --max-new-tokens 6");
  ASSERT_EQ(result.code, 0) << result.all();
  const Json kept = Json::load(dir_ / "out/hf/generation_config.json"),
             given = Json::parse(generation, "given");
  for (const char* name : {"eos_token_id", "temperature", "top_p"}) EXPECT_EQ(kept[name], given[name]);
  const std::vector<Json> answers = predictions("out");
  ASSERT_EQ(answers.size(), 4U);
  for (const Json& answer : answers) {
    EXPECT_EQ(trim(answer["predict"].as_string()), trim(answer["label"].as_string()));
    for (const char* model : {"out", "out/hf"}) {
      const CommandResult text = run_command(
          "cd " + dir_.path().string() + " && " + app("generate") + " --model " + model + " --prompt '" +
          answer["prompt"].as_string() + "' --max-new-tokens 6 --temperature 0 --json");
      EXPECT_EQ(Json::parse(text.out, "generate")["text"], answer["predict"]) << model << text.all();
    }
  }
}

TEST_F(FinetuneBegin, TheOptionsOfATokenizerGoWithTheModelsOwn) {
  // With --eod-token b, the id of "b" ends an answer; without it, the id would be 0.
  const Json vocabulary = Json::load(dir_ / "model/tokenizer.json")["model"]["vocab"];
  const CommandResult result = tune(kSmall + "--eod-token b");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(Json::load(dir_ / "out/hf/generation_config.json")["eos_token_id"], vocabulary["b"]);
  const CommandResult unknown = tune(kSmall + "--eod-token '<nothing>'", "x");
  EXPECT_EQ(unknown.code, 65) << unknown.all();
  EXPECT_NE(unknown.err.find("<nothing>"), std::string::npos) << unknown.err;
}

TEST_F(FinetuneBegin, AnswersInIds) {
  fs::remove(dir_ / "model/tokenizer.json");
  write_file(dir_ / "data/train.json", "{\"src\": \"5 6\", \"tgt\": \"7\"}\n");
  write_file(dir_ / "data/dev.json", "{\"src\": \"5 6\", \"tgt\": \"7\"}\n");
  const std::string ids = "--tokenizer-type NullTokenizer --do_generation --max-new-tokens 2 ";
  const CommandResult result =
      tune(ids + "--per_device_train_batch_size 1 --num_train_epochs 60 --learning_rate 5e-3");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(predictions("out").front()["predict"].as_string().substr(0, 1), "7");
}

TEST_F(FinetuneBegin, AnswersHaveTheRoomThatWasAskedFor) {
  const std::string answers = "--no-do-train --do_generation ";
  expect_refused(
      tune(answers + "--max-new-tokens 64"),
      "--max-new-tokens 64 leaves no room for a prompt: the model has 64 positions for both; give at "
      "most 63");
  EXPECT_FALSE(file_exists(dir_ / "out"));
  expect_said(
      tune(answers + "--max-new-tokens 62"),
      "4 of 4 prompts lost their beginning: 2 tokens are left for a prompt when an answer may have 62");
  const std::vector<Json> long_ones = predictions("out");
  expect_said(tune(answers), "answers have at most 32 tokens, not the usual 128: the model has 64 positions");
  expect_said(tune(answers + "--tgt-length 40"),
              "answers have at most 32 tokens, not the 40 of --tgt-length");
  // If the answers fit, there is no warning; an answer may take more than half of the positions.
  const CommandResult fits = tune(answers + "--max-new-tokens 50");
  EXPECT_EQ(fits.code, 0);
  EXPECT_EQ(fits.err.find("at most"), std::string::npos) << fits.err;
  EXPECT_EQ(fits.err.find("lost their beginning"), std::string::npos) << fits.err;
}

TEST_F(FinetuneBegin, ListsNoOptionThatItAlwaysRefuses) {
  const std::string help = run("--help").out;
  // Whether the help lists an option with exactly this name.
  const auto names = [&](const std::string& name) {
    for (const std::string& spelled : {"--" + name, "--[no-]" + name})
      for (size_t at = help.find(spelled); at != std::string::npos; at = help.find(spelled, at + 1))
        if (const char next = help[at + spelled.size()]; next != '-' && !std::isalnum(next)) return true;
    return false;
  };
  for (const char* known : {"model", "do-train", "max-length"}) ASSERT_TRUE(names(known)) << known;
  for (const char* name :
       {"load", "finetune", "use-checkpoint-args", "exit-on-missing-checkpoint", "checkpoint",
        "train-samples", "lr-decay-samples", "lr-warmup-samples", "rampup-batch-size",
        "step-batch-size-schedule", "full-validation", "multiple-validation-sets", "validation-set-names",
        "lr-wsd-decay-samples", "eval-only", "sample-prompt", "sample-tokens"}) {
    EXPECT_FALSE(names(name)) << name;
    expect_refused(tune(concat("--", name, " 1")), concat("--", name, " is not supported; "));
  }
  expect_refused(tune("--rampup-batch-size 1 1 8"),
                 "give --global-batch-size or --gradient-accumulation-steps");
}

}  // namespace
}  // namespace megalith::test
