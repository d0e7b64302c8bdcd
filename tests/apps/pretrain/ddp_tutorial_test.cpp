// Tests training as in the PyTorch DDP tutorial: text folders, epochs, steps counted from 0, and its log.
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
      "--log-style ddp-tutorial --log-interval 1 --tokenizer-model " +
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
  const std::vector<std::string> ends = grep(log, "\\[GPU0\\] Epoch \\d+ finished, checkpoint: \\d{6}$");
  ASSERT_EQ(ends.size(), 2u) << log;
  char last[100];
  std::snprintf(last, sizeof last, "[GPU0] Epoch 2 finished, checkpoint: %06d",
                static_cast<int>(2 * steps - 1));
  EXPECT_EQ(ends[1], last);
  EXPECT_FALSE(grep(log, "Generated Sample Text: ").empty());
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
  const auto first = parse_int(ends[0].substr(ends[0].size() - 6));
  ASSERT_TRUE(first) << ends[0];
  const CommandResult rest = tutorial(line + concat("--checkpoint ", *first, " --log-json rest.jsonl"));
  ASSERT_EQ(rest.code, 0) << rest.err;
  const auto all = lines("whole.jsonl", "train"), after = lines("rest.jsonl", "train");
  const auto done = static_cast<size_t>(*first + 1);
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
  const CommandResult rest = tutorial(still + "--checkpoint 5 --log-json rest.jsonl");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE((rest.out + rest.err)
                .find("model_000005.pth: its steps have 8 samples, this run's 4: the run continues after 6 "
                      "of its own "
                      "steps, at sample 24 of its order"),
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
  const CommandResult rest =
      run(line + "--checkpoint " + number + " --exit-interval " + std::to_string(*parse_int(number) + 2));
  EXPECT_EQ(rest.code, 0) << rest.all();
  EXPECT_EQ(lines("s.jsonl", "train").back()["iteration"].as_int(), *parse_int(number) + 2);
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
