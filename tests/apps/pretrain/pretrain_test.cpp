#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/json/json.h"
#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

TEST_F(PretrainApp, ResumesBitForBit) {
  const CommandResult whole = train("--save whole --load whole --log-json whole.jsonl");
  ASSERT_EQ(whole.code, 0) << whole.all();
  ASSERT_EQ(train("--save parts --load parts --log-json parts.jsonl --exit-interval 10").code, 0);
  const CommandResult resumed = train("--save parts --load parts --log-json parts.jsonl");
  ASSERT_EQ(resumed.code, 0) << resumed.all();
  EXPECT_NE(resumed.all().find("at iteration 10"), std::string::npos) << resumed.all();
  EXPECT_EQ(file("parts/latest_checkpointed_iteration.txt"), file("whole/latest_checkpointed_iteration.txt"));

  // Parameters, moments and state, byte for byte.
  const auto contents = checkpoint_contents(dir_ / "whole/iter_0000020");
  EXPECT_EQ(contents, checkpoint_contents(dir_ / "parts/iter_0000020"));
  EXPECT_GE(contents.size(), 2U);

  // All figures of all steps and evaluations must be equal.
  for (const char* type : {"train", "valid", "test"}) {
    const std::vector<Json> a = lines("whole.jsonl", type), b = lines("parts.jsonl", type);
    ASSERT_EQ(a.size(), b.size()) << type;
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i]["loss"].dump(), b[i]["loss"].dump()) << type << i;
      if (std::string(type) == "train") {
        EXPECT_EQ(a[i]["grad_norm"].dump(), b[i]["grad_norm"].dump()) << i;
      }
    }
  }
  EXPECT_EQ(lines("parts.jsonl", "train").size(), 20U);
}

// The log goes to stdout, like upstream's log, so that `| tee train.log` and `> log` capture it. Warnings
// stay on the terminal.
TEST_F(PretrainApp, WritesItsLogToStdoutInMegatronsWordsAndWarningsToStderr) {
  const CommandResult result = train("--split 9,1,0");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(result.err, "warning: --split \"9,1,0\" leaves no test data: that evaluation is left out\n");
  for (const char* line :
       {" > padded vocab (size: 61) with 67 dummy tokens (new size: 128)\n",
        "> building train, validation, and test datasets for GPT ...\n",
        " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): ",
        " iteration        5/      20 | consumed samples:           20 | elapsed time per iteration (ms): ",
        " validation loss at iteration 10 | lm loss value: ",
        " validation loss at iteration 20 on validation set | "})
    EXPECT_NE(result.out.find(line), std::string::npos) << line << "\n" << result.all();
  EXPECT_TRUE(
      test::Pattern("\n \\[20\\d\\d-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\] iteration  ").is_in(result.out))
      << result.out;
}

TEST_F(PretrainApp, TakesADataPathForEachPart) {
  ASSERT_EQ(run_command("cd " + dir_.path().string() + " && cp c.bin d.bin && cp c.idx d.idx").code, 0);
  const std::string model = test::replaced(kModel, "--data-path c|--split 8,1,1", "");
  const CommandResult result =
      run(model + "--train-data-path c --valid-data-path d --log-json own.jsonl --exit-signal-handler");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(result.err, "warning: no test data are given: that evaluation is left out\n");
  EXPECT_EQ(lines("own.jsonl", "valid").size(), 3U);
  // If all documents of c are training data, the samples must be those of --split 1,0,0.
  ASSERT_EQ(train("--split 1,0,0 --eval-iters 0 --log-json whole.jsonl").code, 0);
  EXPECT_EQ(lines("own.jsonl", "train")[19]["loss"].dump(), lines("whole.jsonl", "train")[19]["loss"].dump());
}

// For 40 documents, "969,30,1" gives none to the test set. Megatron's test set would be None; here it is left
// out with a warning.
TEST_F(PretrainApp, TrainsWhereASplitRoundsToNoDocument) {
  const CommandResult result = train("--split 969,30,1");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(result.err,
            "warning: --split \"969,30,1\" leaves no test data: that evaluation is left out; --split 36,2,2 "
            "gives each part some documents\n");
  EXPECT_NE(result.out.find(" validation loss at iteration 10 | "), std::string::npos) << result.out;
}

TEST_F(PretrainApp, TrainsOnMockDataAndKeepsItsLog) {
  const std::string model = test::replaced(kModel, "--data-path c", "--mock-data");
  const CommandResult result = run(model + "--log-file kept.log --log-throughput --bf16");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_TRUE(test::Pattern("throughput per GPU \\(TFLOP/s/GPU\\): [0-9.]+ \\|.* MFU: [0-9.]+% \\| memory: ")
                  .is_in(result.out))
      << result.out;
  const std::string kept = file("kept.log");
  EXPECT_TRUE(test::Pattern("^20\\d\\d-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d ").is_in(kept)) << kept;
  EXPECT_NE(kept.find("] iteration       20/      20 |"), std::string::npos) << kept;
  ASSERT_EQ(run(model + "--log-file kept.log --bf16").code, 0);
  EXPECT_GT(file("kept.log").size(), kept.size() * 3 / 2);  // the second run appended to the log
}

TEST_F(PretrainApp, EvaluatesWithoutTraining) {
  ASSERT_EQ(train("--save s").code, 0);
  const CommandResult result =
      run("--skip-train --load s --num-layers 2 --hidden-size 16 --num-attention-heads 2 "
          "--seq-length 12 --micro-batch-size 2 --data-path c --vocab-size 61 "
          "--eval-iters 2 --split 8,1,1");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find(" validation loss at iteration 20 on test set | "), std::string::npos)
      << result.out;
  EXPECT_EQ(result.out.find("training ..."), std::string::npos) << result.out;
  const CommandResult epochs =
      run("--eval-only --num-epochs 2 --load s --num-layers 2 --hidden-size 16 --num-attention-heads 2 "
          "--seq-length 12 --micro-batch-size 2 --data-path c --vocab-size 61 "
          "--eval-iters 2 --split 8,1,1");
  ASSERT_EQ(epochs.code, 0) << epochs.all();
  const auto tested = [](const std::string& log) {
    const size_t at = log.find(" validation loss at iteration 20 on test set | ");
    return log.substr(at, log.find('\n', at) - at);
  };
  EXPECT_EQ(tested(epochs.out), tested(result.out));
}

// If stdout fails, because the disk is full or the reader is gone, the run must continue.
TEST_F(PretrainApp, ContinuesWhereItsLogCannotBeWritten) {
  const CommandResult result = run_command("cd " + dir_.path().string() + " && " + app("pretrain") + " " +
                                           kModel + "--save s > /dev/full");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.err.find("stdout: cannot write: No space left on device; the log continues here"),
            std::string::npos)
      << result.err;
  EXPECT_TRUE(fs::exists(dir_ / "s/iter_0000020"));
}

TEST_F(PretrainApp, SavesAtASignalAndResumesWithTheSameCommand) {
  const std::string options = "--train-iters 100000 --save s --load s --log-json s.jsonl --eval-iters 0";
  const CommandResult stopped = run_command(
      "cd " + dir_.path().string() + " && (" + app("pretrain") + " " + kModel + options +
      " & pid=$!; until grep -q train s.jsonl 2>/dev/null || ! kill -0 $pid; do sleep 0.05; done; " +
      "kill -TERM $pid; wait $pid)");
  EXPECT_EQ(stopped.code, 75) << stopped.all();
  EXPECT_NE(stopped.all().find("stopped by SIGTERM; saved; run the same command to resume"),
            std::string::npos)
      << stopped.all();
  const int64_t done = *parse_int(trim(file("s/latest_checkpointed_iteration.txt")));
  EXPECT_GE(done, 1);
  EXPECT_EQ(lines("s.jsonl", "train").back()["iteration"].as_int(), done);
  const CommandResult resumed = train(options + " --exit-interval " + std::to_string(done + 1));
  EXPECT_EQ(resumed.code, 0) << resumed.all();
  EXPECT_EQ(lines("s.jsonl", "train").back()["iteration"].as_int(), done + 1);
}

TEST_F(PretrainApp, TakesTheShapeFromTheCheckpointOnRequest) {
  ASSERT_EQ(train("--save s").code, 0);
  const CommandResult result =
      run("--use-checkpoint-args --load s --micro-batch-size 2 --global-batch-size 4 --train-iters 20 --lr "
          "0.01 --min-lr 0.001 "
          "--lr-decay-style cosine --lr-warmup-iters 2 --data-path c --split 8,1,1 --eval-iters 1");
  EXPECT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.all().find("on test set"), std::string::npos) << result.all();
}

TEST_F(PretrainApp, SaysWhatItCannotDo) {
  const auto refused = [&](const std::string& options, const std::string& part, ErrorKind kind) {
    const CommandResult result = train(options);
    EXPECT_EQ(result.code, exit_code(kind)) << options << "\n" << result.all();
    EXPECT_NE(result.all().find(part), std::string::npos) << options << "\n" << result.all();
  };
  refused("--tensor-model-parallel-size 2 --world-size 2",
          "the layout needs 2 ranks (tensor 2 * pipeline 1 * data 1) and --nproc gives 1; give --nproc 2",
          ErrorKind::kUsage);
  refused("--context-parallel-size 2",
          "the layout needs 2 ranks (tensor 1 * pipeline 1 * context 2 * data 1) and --nproc gives 1",
          ErrorKind::kUsage);
  refused("--sample-prompt x", "--sample-prompt needs a tokenizer", ErrorKind::kUsage);
  refused("--data-path nothing", "nothing.idx", ErrorKind::kNoInput);
  refused("--swiglu", "--ffn-hidden-size", ErrorKind::kUsage);  // 8/3 * 16 is below 64, its unit
  refused("--vocab-size 40", "document", ErrorKind::kData);     // R16 of docs/reliability.md
  refused("--load none --exit-on-missing-checkpoint", "holds no checkpoint", ErrorKind::kNoInput);
  EXPECT_FALSE(fs::exists(dir_ / "none"));
}

TEST_F(PretrainApp, RefusesAnotherModelsCheckpointWithEveryDifference) {
  ASSERT_EQ(train("--save s").code, 0);
  const CommandResult result = train("--load s --num-layers 3 --num-attention-heads 4");
  EXPECT_EQ(result.code, 64) << result.all();
  EXPECT_NE(result.all().find("--num-layers: checkpoint 2, command line 3"), std::string::npos)
      << result.all();
  EXPECT_NE(result.all().find("--num-attention-heads: checkpoint 2, command line 4"), std::string::npos)
      << result.all();
}

TEST_F(PretrainApp, PrintsTheSampleOrder) {
  const CommandResult result =
      run("--dump-sample-order --data-path c --split 8,1,1 --seq-length 12 --samples 20 8 8 --n 2 "
          "--vocab-size 61");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find("split train "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("sample test 1 "), std::string::npos) << result.out;
  EXPECT_EQ(run("--dump-sample-order --help").code, 0);
}

TEST_F(PretrainApp, TrainsLlamaIn16BitsWithRecomputation) {
  const CommandResult result = train(
      "--bf16 --swiglu --ffn-hidden-size 40 --normalization RMSNorm --position-embedding-type rope "
      "--disable-bias-linear "
      "--untie-embeddings-and-output-weights --group-query-attention --num-query-groups 1 "
      "--recompute-activations "
      "--log-json l.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  const std::vector<Json> steps = lines("l.jsonl", "train");
  ASSERT_EQ(steps.size(), 20U);
  EXPECT_LT(steps[19]["loss"].as_double(), steps[0]["loss"].as_double() - 0.3);
}

}  // namespace
}  // namespace megalith::test
