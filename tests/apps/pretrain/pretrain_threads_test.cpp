// Tests megalith-pretrain with several ranks, which are threads of one process.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/json/json.h"
#include "tests/apps/pretrain/pretrain_app.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PretrainThreads : public PretrainApp {
 protected:
  std::vector<double> losses(const std::string& name) const { return train_losses(dir_ / name); }
  void expect_near(const std::vector<double>& got, const std::vector<double>& want) const {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i] / want[i], 1, 1e-5) << i;
  }
};

// --dry-run shows what a run would do, and does nothing (docs/training.md).
TEST_F(PretrainThreads, ShowARunWithoutRunningIt) {
  const CommandResult result =
      train("--nproc 4 --pipeline-model-parallel-size 2 --micro-batch-size 1 --save s --dry-run");
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* part :
       {"layout: 4 ranks = tensor 1 x context 1 x data 2 x pipeline 2\n",
        "  rank 3: tensor 0, pipeline 1, data 1\n", "  tensor 0, pipeline 1: ",
        "a step of 20: 4 samples of 12 tokens, 2 microbatches of 1 on each data-parallel rank\n",
        "  pipeline rank 0 | 01..0-.1-\n  pipeline rank 1 | .00-11-\n", "first samples:\n  sample 0: "})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << result.out;
  EXPECT_FALSE(fs::exists(dir_ / "s"));
  EXPECT_EQ(result.out.find("iteration"), std::string::npos) << result.out;
}

TEST_F(PretrainThreads, ShowThatARunIsBeyondTheDevicesMemory) {
  const std::string small = "--device-memory-gb 0.0001 ";
  const CommandResult shown = train(small + "--dry-run"), tried = train(small);
  EXPECT_EQ(tried.code, 64) << tried.all();
  EXPECT_EQ(shown.code, 64) << shown.all();
  EXPECT_NE(shown.err.find("--device-memory-gb 0.0001: (tensor, pipeline) rank (0, 0) needs"),
            std::string::npos)
      << shown.err;
  EXPECT_EQ(shown.err, tried.err);
  EXPECT_NE(shown.out.find("first samples:"), std::string::npos) << shown.out;
  EXPECT_EQ(train("--nproc 2 --device-memory-gb 1 --dry-run").code, 0);
}

TEST_F(PretrainThreads, SayWhoseStagesTookLongest) {
  const CommandResult result = train("--nproc 2 --log-straggler");
  ASSERT_EQ(result.code, 0) << result.err;
  size_t lines = 0;
  for (const std::string& line : split(result.out, '\n')) lines += line.starts_with(" > stages took ");
  EXPECT_EQ(lines, 4u) << result.out;
}

// Runs the command of docs/training.md, "Many ranks".
TEST_F(PretrainThreads, TrainAsOneDoes) {
  ASSERT_EQ(train("--log-json one.jsonl").code, 0);
  const CommandResult two = train("--nproc 2 --log-json two.jsonl");
  ASSERT_EQ(two.code, 0) << two.all();
  EXPECT_NE(two.all().find("using world size: 2, data-parallel size: 2, context-parallel size: 1, "
                           "tensor-model-parallel size: 1, pipeline-model-parallel size: 1"),
            std::string::npos)
      << two.all();
  const CommandResult eight = train(
      "--nproc 8 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel "
      "--use-distributed-optimizer --micro-batch-size 1 --log-json eight.jsonl");
  ASSERT_EQ(eight.code, 0) << eight.all();
  EXPECT_NE(eight.all().find("(tensor, pipeline) model parallel rank (1, 1): "), std::string::npos);
  EXPECT_NE(eight.all().find("; all 8 ranks: "), std::string::npos);
  expect_near(losses("two.jsonl"), losses("one.jsonl"));
  expect_near(losses("eight.jsonl"), losses("one.jsonl"));
  // One rank logs for all.
  size_t count = 0;
  for (size_t at = 0; (at = eight.all().find(" iteration        5/", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 1U) << eight.all();
}

// Each thread keeps its own log, as each process of a launcher does.
TEST_F(PretrainThreads, KeepALogEach) {
  const CommandResult result = train("--nproc 2 --log-dir logs");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto losses_of = [](const std::string& log) {
    std::string out;
    for (const std::string& line : split(log, '\n'))
      if (const size_t at = line.find("lm loss"); at != std::string::npos)
        out += line.substr(at, line.find("tokens/s") - at) + '\n';
    return out;
  };
  EXPECT_EQ(split(trim(losses_of(result.out)), '\n').size(), 8U) << result.out;
  EXPECT_EQ(losses_of(file("logs/workerlog.0")), losses_of(result.out));
  EXPECT_EQ(losses_of(file("logs/workerlog.1")), losses_of(result.out));
}

TEST_F(PretrainThreads, SaveAtASignalAndContinue) {
  const std::string options =
      "--nproc 2 --pipeline-model-parallel-size 2 --train-iters 100000 --save s --load s --log-json s.jsonl "
      "--eval-iters 0";
  const CommandResult stopped = run_command(
      "cd " + dir_.path().string() + " && (" + app("pretrain") + " " + kModel + options +
      " & pid=$!; until grep -q train s.jsonl 2>/dev/null || ! kill -0 $pid; do sleep 0.05; done; " +
      "kill -TERM $pid; wait $pid)");
  EXPECT_EQ(stopped.code, 75) << stopped.all();
  const int64_t done = *parse_int(trim(file("s/latest_checkpointed_iteration.txt")));
  EXPECT_EQ(lines("s.jsonl", "train").back()["iteration"].as_int(), done);
  const CommandResult resumed = train(options + " --exit-interval " + std::to_string(done + 1));
  EXPECT_EQ(resumed.code, 0) << resumed.all();
  EXPECT_EQ(lines("s.jsonl", "train").back()["iteration"].as_int(), done + 1);
}

TEST_F(PretrainThreads, AreRefusedWithEveryComplaintAtOnce) {
  const CommandResult result =
      train("--nproc 6 --tensor-model-parallel-size 3 --pipeline-model-parallel-size 4");
  EXPECT_EQ(result.code, 64);
  for (const char* part : {"--num-attention-heads 2", "--num-layers 2", "12 does not divide the 6 ranks"})
    EXPECT_NE(result.all().find(part), std::string::npos) << part << "\n" << result.all();
}

TEST_F(PretrainThreads, ResumeFromACopiedFolderAndAnEarlierTracker) {
  ASSERT_EQ(train("--nproc 2 --save s --save-interval 5 --log-json whole.jsonl").code, 0);
  fs::create_directories(dir_ / "copy");
  fs::copy(dir_ / "s/iter_0000010", dir_ / "copy/iter_0000010", fs::copy_options::recursive);
  std::ofstream(dir_ / "copy/latest_checkpointed_iteration.txt") << "10";
  ASSERT_EQ(train("--nproc 2 --load copy --log-json copy.jsonl").code, 0);
  const std::vector<double> whole = losses("whole.jsonl"), copy = losses("copy.jsonl");
  ASSERT_EQ(copy.size(), 10U);
  EXPECT_EQ(copy, std::vector<double>(whole.begin() + 10, whole.end()));

  std::ofstream(dir_ / "s/latest_checkpointed_iteration.txt") << "10";
  const CommandResult back = train("--nproc 2 --load s --save s --save-interval 5 --log-json back.jsonl");
  ASSERT_EQ(back.code, 0) << back.all();
  EXPECT_EQ(losses("back.jsonl"), copy);
  EXPECT_EQ(file("s/latest_checkpointed_iteration.txt"), "20");
}

}  // namespace
}  // namespace megalith::test
