// Tests training as in the PyTorch DDP tutorial: text folders, epochs, steps counted from 0, and its log.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/text/formats/make_tokenizer.h"
#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/environment.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class DdpTutorial : public PretrainApp {
 protected:
  DdpTutorial() {
    fs::create_directories(dir_ / "train");
    fs::create_directories(dir_ / "valid");
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += concat("step ", i, " of the long way home, said ", 7 * i % 11, ".\n");
    write_file(dir_ / "train/a.txt", text);
    write_file(dir_ / "train/b.txt", text.substr(0, 500));
    write_file(dir_ / "valid/a.txt", text.substr(200, 700));
  }
  CommandResult tutorial(const std::string& options) const { return run(kTutorial + options); }
  static std::vector<std::string> grep(const std::string& log, const std::string& pattern) {
    std::vector<std::string> out;
    for (const std::string& line : split(log, '\n')) {
      if (const auto found = test::Pattern(pattern).first_in(line); !found.empty()) out.push_back(found[0]);
    }
    return out;
  }
  /// The number of tokens in the training folder.
  int64_t tokens() const {
    const auto tokenizer =
        make_tokenizer({.type = "HuggingFaceTokenizer", .vocab = "", .merges = "", .model = kTokenizer});
    std::vector<int32_t> ids;
    for (const char* name : {"train/a.txt", "train/b.txt"}) tokenizer->encode(file(name), ids);
    return static_cast<int64_t>(ids.size()) + 1;
  }
  const std::string kTokenizer = test_data("text/goldens/trained/tokenizer.json");
  const std::string kTutorial =
      "--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --no-add-qkv-bias "
      "--train-data-path train --valid-data-path valid --stride 16 --micro-batch-size 2 --global-batch-size "
      "4 "
      "--num-epochs 2 --lr 6e-3 --min-lr 1e-5 --lr-warmup-init 3e-4 --lr-warmup-iters 4 --lr-decay-style "
      "cosine --clip-grad 1.0 --clip-grad-after-warmup --seed 123 --eval-freq 5 --eval-iter 2 --threads 1 "
      "--log-style ddp-tutorial --count-steps-from-zero --at-epoch-ends --log-interval 1 --tokenizer-model " +
      kTokenizer + " ";
};

TEST_F(DdpTutorial, PrintsItsLines) {
  const CommandResult result = tutorial("--log-json l.jsonl --sample-prompt 'step ' --sample-tokens 3");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string log = result.out + result.err;
  const int64_t windows = (tokens() - 16 + 15) / 16, steps = windows / 4;  // range(0, tokens - seq, stride)
  ASSERT_GT(steps, 6);
  const std::vector<Json> train = lines("l.jsonl", "train");
  ASSERT_EQ(static_cast<int64_t>(train.size()), 2 * steps);
  // With one rank, the batch's loss is also the step's loss.
  const std::vector<std::string> batches =
      grep(log, "\\[GPU0\\] Epoch \\d+ \\(Batch \\d{6}\\): Train loss \\d+\\.\\d{3}$");
  ASSERT_EQ(batches.size(), train.size()) << log;
  for (int64_t i = 0; i < 2 * steps; ++i) {
    char line[100];
    std::snprintf(line, sizeof line, "[GPU0] Epoch %d (Batch %06d): Train loss %.3f",
                  static_cast<int>(i / steps + 1), static_cast<int>(i % steps),
                  train[static_cast<size_t>(i)]["loss"].as_double());
    EXPECT_EQ(batches[static_cast<size_t>(i)], line);
  }
  const std::vector<std::string> evaluations =
      grep(log, "^Epoch \\d+ \\(Step \\d{6}\\): Train loss \\d+\\.\\d{3}, Val loss \\d+\\.\\d{3}$");
  ASSERT_FALSE(evaluations.empty()) << log;
  EXPECT_TRUE(evaluations[0].starts_with("Epoch 1 (Step 000000): ")) << evaluations[0];
  EXPECT_TRUE(evaluations[1].starts_with("Epoch 1 (Step 000005): ")) << evaluations[1];
  // Also at the end of each epoch.
  for (const int64_t epoch : {1, 2}) {
    char end[100];
    std::snprintf(end, sizeof end, "Epoch %d (Step %06d): ", static_cast<int>(epoch),
                  static_cast<int>(epoch * steps - 1));
    EXPECT_TRUE(std::any_of(evaluations.begin(), evaluations.end(),
                            [&](const std::string& line) { return line.starts_with(end); }))
        << end << log;
  }
  const std::vector<std::string> ends = grep(log, "\\[GPU0\\] Epoch \\d+ finished, checkpoint: \\d{6}$");
  ASSERT_EQ(ends.size(), 2u) << log;
  char last[100];
  std::snprintf(last, sizeof last, "[GPU0] Epoch 2 finished, checkpoint: %06d",
                static_cast<int>(2 * steps - 1));
  EXPECT_EQ(ends[1], last);
  // A sample follows each evaluation, and a rule the last of an epoch; the run's end has an evaluation more.
  EXPECT_EQ(grep(log, "Generated Sample Text: ").size() + 1, evaluations.size()) << log;
  EXPECT_EQ(grep(log, "^=====$").size(), 2u) << log;
  EXPECT_FALSE(grep(log, "iteration +1/").empty());  // Megatron's lines are logged, too
}

// The tutorial's learning rates: lr(s) = init + s * (lr - init) / warmup, then a cosine over all epochs. The
// log must show the rate that each step used, beginning with init.
TEST_F(DdpTutorial, WarmsUpFromItsFirstRateOverAllEpochs) {
  ASSERT_EQ(tutorial("--log-json l.jsonl").code, 0);
  const std::vector<Json> train = lines("l.jsonl", "train");
  const double steps = static_cast<double>(train.size());
  for (size_t i = 0; i < train.size(); ++i) {
    const auto s = static_cast<double>(i);
    const double want = s <= 4 ? 3e-4 + s * (6e-3 - 3e-4) / 4
                               : 1e-5 + (6e-3 - 1e-5) * 0.5 * (1 + std::cos(M_PI * (s - 4) / (steps - 4)));
    EXPECT_NEAR(train[i]["lr"].as_double(), want, 1e-12) << i;
    EXPECT_EQ(train[i]["tokens"].as_int(), static_cast<int64_t>(i + 1) * 4 * 16);
  }
}

// An epoch's last line names a checkpoint, a pair of files. A run must be able to resume from it.
TEST_F(DdpTutorial, SavesThePairThatAnEpochsEndNames) {
  const std::string line = "--ckpt-format pth --save checkpoint --save-freq 1000 ";
  const CommandResult whole = tutorial(line + "--log-json whole.jsonl");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto ends = grep(whole.out + whole.err, "\\[GPU0\\] Epoch \\d+ finished, checkpoint: \\d{6}$");
  ASSERT_EQ(ends.size(), 2u) << whole.out;
  for (const std::string& end : ends) {
    const std::string number = end.substr(end.size() - 6);
    EXPECT_TRUE(fs::exists(dir_ / ("checkpoint/model_" + number + ".pth"))) << end;
    EXPECT_TRUE(fs::exists(dir_ / ("checkpoint/optimizer_" + number + ".pth"))) << end;
  }
  // Number 0 is that of step 0, 1 and 2 those of the epochs.
  EXPECT_TRUE(ends[0].ends_with(" 000001")) << ends[0];
  EXPECT_TRUE(ends[1].ends_with(" 000002")) << ends[1];
  const CommandResult rest = tutorial(line + "--checkpoint 1 --log-json rest.jsonl");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_FALSE(fs::exists(dir_ / "checkpoint/model_000003.pth"));  // number 2 was saved again
  const auto all = lines("whole.jsonl", "train"), after = lines("rest.jsonl", "train");
  const size_t done = all.size() / 2;
  ASSERT_EQ(after.size(), all.size() - done);
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(after[i]["loss"].dump(), all[i + done]["loss"].dump()) << i;
}

// With a learning rate of almost zero, a step's loss shows which samples the step used.
TEST_F(DdpTutorial, CountsTheDataInStepsWithAnotherBatch) {
  const std::string still = "--lr 1e-30 --min-lr 0 --lr-warmup-init 0 --ckpt-format pth --save checkpoint ";
  const CommandResult whole = tutorial(still + "--save whole --log-json whole.jsonl");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const CommandResult first = tutorial(still + "--global-batch-size 8 --exit-interval 6");
  ASSERT_EQ(first.code, 0) << first.err;
  // It is the only pair, or the second, if the end of an epoch is among the six steps.
  const std::string pair = fs::exists(dir_ / "checkpoint/model_000001.pth") ? "1" : "0";
  const CommandResult rest = tutorial(still + "--checkpoint " + pair + " --log-json rest.jsonl");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE((rest.out + rest.err)
                .find("model_00000" + pair +
                      ".pth: its steps have 8 samples, this run's 4: the run continues after 6 "
                      "of its own steps, at sample 24 of its order"),
            std::string::npos)
      << rest.out;
  const auto all = lines("whole.jsonl", "train"), after = lines("rest.jsonl", "train");
  ASSERT_EQ(after.size(), all.size() - 6);
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_EQ(after[i]["loss"].dump(), all[i + 6]["loss"].dump()) << i;
  EXPECT_EQ(after.back()["consumed_samples"].dump(), all.back()["consumed_samples"].dump());
}

// The command has no --load: if it were repeated unchanged, it would start at step 0 and overwrite what it
// saved. The stopped run must say so.
TEST_F(DdpTutorial, SaysWhatAStoppedRunIsGoneOnWith) {
  const std::string line =
      kTutorial + "--num-epochs 10000 --ckpt-format pth --save checkpoint --log-json s.jsonl ";
  const CommandResult stopped =
      run_command("cd " + dir_.path().string() + " && (" + app("pretrain") + " " + line +
                  "& pid=$!; until grep -q train s.jsonl 2>/dev/null || ! kill -0 $pid; do sleep 0.05; done; "
                  "kill -TERM $pid; wait $pid)");
  EXPECT_EQ(stopped.code, 75) << stopped.all();
  const std::vector<std::string> said = grep(stopped.all(), "saved; to resume, give --checkpoint \\d+: .*");
  ASSERT_EQ(said.size(), 1u) << stopped.all();
  EXPECT_TRUE(said[0].ends_with("the same command would begin again where this run did")) << said[0];
  const std::string number = grep(said[0], "\\d+")[0];
  const int64_t done = lines("s.jsonl", "train").back()["iteration"].as_int();
  const CommandResult rest =
      run(line + "--checkpoint " + number + " --exit-interval " + std::to_string(done + 1));
  EXPECT_EQ(rest.code, 0) << rest.all();
  EXPECT_EQ(lines("s.jsonl", "train").back()["iteration"].as_int(), done + 1);
}

// The rate rises as the tutorial's does until such a run ends.
TEST_F(DdpTutorial, MayBeShorterThanItsWarmUp) {
  const CommandResult result = tutorial("--lr-warmup-iters 1000 --log-json l.jsonl");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.all().find("the warm-up of 1000 steps outlasts the run's"), std::string::npos);
  const std::vector<Json> train = lines("l.jsonl", "train");
  ASSERT_FALSE(train.empty());
  for (size_t i = 0; i < train.size(); ++i)
    EXPECT_NEAR(train[i]["lr"].as_double(), 3e-4 + static_cast<double>(i) * (6e-3 - 3e-4) / 1000, 1e-12) << i;
}

/// The loop of the tutorial as torch runs it, on weights and windows that are given (goldens/tutorial.json).
class TutorialLoop : public DdpTutorial {
 protected:
  TutorialLoop() {
    for (const char* const name : {"text", "start", "pair"})
      fs::copy(test_data(concat("dialects/ddp_tutorial/goldens/", name)), dir_ / name,
               fs::copy_options::recursive);
  }
  CommandResult loop(const std::string& options) const {
    return run(
        "--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 16 --no-add-qkv-bias "
        "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 "
        "--train-data-path text/train --valid-data-path text/valid --stride 16 --global-batch-size 2 "
        "--num-epochs 4 --lr 6e-3 --min-lr 1e-5 --lr-warmup-init 3e-4 --lr-warmup-iters 10 "
        "--lr-decay-style cosine --clip-grad 0.5 --clip-grad-after-warmup --weight-decay 0.1 "
        "--weight-decay-all --seed 123 --eval-freq 5 --eval-iter 2 --count-steps-from-zero --at-epoch-ends "
        "--log-style ddp-tutorial --threads 1 --tokenizer-model " +
        kTokenizer + " " + options);
  }
  /// The steps of a run in fp32, from step `first` on, must be torch's in fp64.
  void expect_the_loop(const std::string& figures, size_t first) const {
    const std::vector<Json> train = lines(figures, "train");
    ASSERT_EQ(train.size() + first, golden_["losses"].as_array().size());
    for (size_t i = 0; i < train.size(); ++i) {
      EXPECT_NEAR(train[i]["loss"].as_double(), golden_["losses"].as_array()[first + i].as_double(), kNear)
          << i;
      EXPECT_NEAR(train[i]["lr"].as_double(), golden_["rates"].as_array()[first + i].as_double(), 1e-12) << i;
      EXPECT_NEAR(train[i]["grad_norm"].as_double(), golden_["grad_norms"].as_array()[first + i].as_double(),
                  kNear)
          << i;
    }
  }

  static constexpr double kNear = 3e-5;  // fp32's rounding over 48 steps
  const Json golden_ =
      Json::parse(read_file(test_data("dialects/ddp_tutorial/goldens/tutorial.json")), "golden");
};

TEST_F(TutorialLoop, Has48StepsOfTorch) {
  for (const char* const ranks : {"--micro-batch-size 2", "--micro-batch-size 1 --nproc 2",
                                  "--micro-batch-size 1 --nproc 2 --tensor-model-parallel-size 2"}) {
    fs::remove(dir_ / "l.jsonl");
    const CommandResult result = loop(concat("--load start --log-json l.jsonl ", ranks));
    ASSERT_EQ(result.code, 0) << ranks << result.err;
    expect_the_loop("l.jsonl", 0);
    const std::vector<Json> found = lines("l.jsonl", "valid");
    const Json::Array& wanted = golden_["evaluations"].as_array();
    ASSERT_EQ(found.size(), wanted.size() + 1) << "with the one at the run's end";
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found[i]["iteration"].as_int() - 1, wanted[i].as_array()[0].as_int());
      EXPECT_NEAR(found[i]["loss"].as_double(), wanted[i].as_array()[1].as_double(), kNear) << i;
    }
  }
}

// The files are torch's own: they do not say which samples were read.
TEST_F(TutorialLoop, GoesOnWithAPairOfTorch) {
  const CommandResult result =
      loop("--micro-batch-size 2 --save pair --ckpt-format pth --checkpoint 1 --log-json l.jsonl");
  ASSERT_EQ(result.code, 0) << result.err;
  expect_the_loop("l.jsonl", 24);
  EXPECT_TRUE(fs::exists(dir_ / "pair/optimizer_000002.pth"));
  const CommandResult tied =
      run("--num-layers 2 --hidden-size 8 --num-attention-heads 2 --seq-length 16 --no-add-qkv-bias "
          "--train-data-path text/train --train-iters 30 --micro-batch-size 2 --lr 0.001 --save pair "
          "--checkpoint 1 "
          "--tokenizer-model " +
          kTokenizer);
  EXPECT_EQ(tied.code, 65);
  EXPECT_NE(tied.err.find("--untie-embeddings-and-output-weights"), std::string::npos) << tied.err;
  const CommandResult relu =
      loop("--hidden-act relu --micro-batch-size 2 --save pair --ckpt-format pth --checkpoint 1");
  EXPECT_EQ(relu.code, 65);
  EXPECT_NE(relu.err.find("is a GPTModel (learned positions, LayerNorm, GELU by tanh"), std::string::npos)
      << relu.err;
}

// goldens/by_step was written by Megalith at commit 4b6e8587, which numbered pairs by steps and gave them its
// own names, with the options of this test and --exit-interval 6.
TEST_F(TutorialLoop, GoesOnWithAPairThatIsNumberedByItsStep) {
  const std::string options =
      "--num-layers 1 --hidden-size 4 --num-attention-heads 2 --seq-length 16 --no-add-qkv-bias "
      "--attention-dropout 0.1 --hidden-dropout 0 --train-data-path text/train --stride 16 "
      "--micro-batch-size 2 --num-epochs 2 --lr 6e-3 --min-lr 1e-5 --lr-warmup-iters 4 "
      "--lr-decay-style cosine --seed 123 --threads 1 --ckpt-format pth --tokenizer-model " +
      kTokenizer;
  fs::copy(test_data("dialects/ddp_tutorial/goldens/by_step"), dir_ / "by_step");
  const CommandResult whole = run(options + " --save whole --log-json whole.jsonl");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const CommandResult rest = run(options + " --save by_step --checkpoint 5 --log-json rest.jsonl");
  ASSERT_EQ(rest.code, 0) << rest.err;
  const auto all = lines("whole.jsonl", "train"), after = lines("rest.jsonl", "train");
  ASSERT_EQ(after.size() + 6, all.size());
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_NEAR(after[i]["loss"].as_double(), all[i + 6]["loss"].as_double(), 1e-6) << i;
  EXPECT_TRUE(fs::exists(dir_ / "by_step/model_000006.pth"));
}

// All gradients exceed the limit, but during the warm-up the steps must equal those of a run without
// clipping.
TEST_F(DdpTutorial, ClipsAfterTheWarmUpOnly) {
  ASSERT_EQ(tutorial("--clip-grad 1e-3 --log-json clipped.jsonl").code, 0);
  ASSERT_EQ(tutorial("--clip-grad 0 --log-json free.jsonl").code, 0);
  const std::vector<Json> clipped = lines("clipped.jsonl", "train"), free = lines("free.jsonl", "train");
  // Step 5 is the first above the warm-up's 4, so that the loss of step 6 is the first to differ.
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(clipped[i]["loss"].dump(), free[i]["loss"].dump()) << i;
  EXPECT_NE(clipped[6]["loss"].dump(), free[6]["loss"].dump());
}

// Each rank logs its own loss. The mean must be the step's loss, as on a single rank.
TEST_F(DdpTutorial, EveryRankSpeaks) {
  SKIP_WITHOUT_GLOO();
  ASSERT_EQ(tutorial("--log-json one.jsonl").code, 0);
  const auto check = [&](const std::string& log, const std::string& json) {
    const std::vector<Json> one = lines("one.jsonl", "train"), two = lines(json, "train");
    ASSERT_EQ(two.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(two[i]["loss"].as_double() / one[i]["loss"].as_double(), 1, 1e-5) << i;
    double sum = 0;
    for (const char* rank : {"0", "1"}) {
      const auto own = grep(log, concat("\\[GPU", rank, "\\] Epoch 1 \\(Batch 000002\\): Train loss .*"));
      ASSERT_EQ(own.size(), 1u) << log;
      sum += *parse_double(own[0].substr(own[0].rfind(' ') + 1));
    }
    EXPECT_NEAR(sum / 2, one[2]["loss"].as_double(), 1e-3);
  };
  // Starts one rank for each device that CUDA would show, as the tutorial's spawn does.
  const CommandResult threads = [&] {
    const Variable shown("CUDA_VISIBLE_DEVICES", "0,2");
    return tutorial("--nproc gpu --log-json threads.jsonl");
  }();
  ASSERT_EQ(threads.code, 0) << threads.err;
  check(threads.out + threads.err, "threads.jsonl");
  const std::string port = std::to_string(free_port());
  const CommandResult processes =
      run_command("cd " + dir_.path().string() +
                  "; export CUDA_VISIBLE_DEVICES=0,2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
                  "; for r in 0 1; do RANK=$r " + app("pretrain") + " " + kTutorial +
                  "--log-json p.jsonl > log.$r 2>&1 & done; wait; cat log.0 log.1");
  check(processes.out, "p.jsonl");
}

// The two ranks' folders have the same number of tokens; only the ids differ.
TEST_F(DdpTutorial, RefusesRanksWithOtherTexts) {
  SKIP_WITHOUT_GLOO();
  for (const std::string folder : {"train", "valid"}) {
    fs::copy(dir_ / folder, dir_ / folder + "0");
    fs::copy(dir_ / folder, dir_ / folder + "1");
    const std::string text = folder + "1/a.txt";
    write_file(dir_ / text, test::replaced(file(text), "said 7", "said 9"));
    const std::string option = "--" + folder + "-data-path " + folder;
    const std::string line = test::replaced(kTutorial, option, option + "$$RANK");
    const CommandResult result =
        run_command("cd " + dir_.path().string() +
                    "; export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()) +
                    "; for r in 0 1; do export RANK=$r; " + app("pretrain") + " " + line +
                    "> log.$r 2>&1 & done; wait; cat log.0 log.1");
    EXPECT_NE(result.out.find("give every machine the same files"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("iteration"), std::string::npos) << result.out;
  }
}

TEST_F(DdpTutorial, SaysWhatIsMissing) {
  const auto refused = [&](const std::string& options, int code, const std::string& part) {
    const CommandResult result = tutorial(options);
    EXPECT_EQ(result.code, code) << options << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  const CommandResult nowhere =
      run(test::replaced(kTutorial, "--train-data-path train", "--train-data-path none"));
  EXPECT_EQ(nowhere.code, 64);
  EXPECT_NE(nowhere.err.find("a folder of texts or a text file, which \"none\" is not"), std::string::npos)
      << nowhere.err;
  refused("--seq-length 9000", 64, "fewer than --global-batch-size 4");
  refused("--data-path c", 64, "contradict each other; give one of them");
  refused("--lr-warmup-init 1", 64, "--lr-warmup-init 1 is greater than --lr");
}

}  // namespace
}  // namespace megalith::test
