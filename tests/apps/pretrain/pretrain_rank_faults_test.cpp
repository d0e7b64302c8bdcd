// Tests a run of two processes of which one is killed, stopped or told to end, and a run whose loss becomes
// infinite or NaN (docs/reliability.md: R1, R2, R5, R6, R7).
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/reader.h"
#include "tests/apps/pretrain/pretrain_ranks.h"
#include "tests/support/large.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PretrainRankFaults : public PretrainRanks {
 protected:
  /// Each rank has a part of the optimizer's state, so both ranks write.
  const std::string kSaving = "--use-distributed-optimizer --eval-iters 0 --save-interval 1 --keep-last 2 ";

  static std::string environment() {
    return "RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port());
  }

  struct Ends {
    int first = 0, second = 0;  // exit codes of ranks 0 and 1; 137: killed
    double seconds = 0;         // from the end of `meanwhile` to the last exit
  };
  /// Starts two ranks, whose output goes to log.0 and log.1. `meanwhile` is a script that may use the ranks'
  /// process ids, $p0 and $p1.
  Ends run_both(const std::string& options, const std::string& meanwhile) const {
    std::string script = "cd " + dir_.path().string() + "\n";
    const std::string command = "env " + environment() + " " + app("pretrain") + " " + kModel + options;
    for (const char* rank : {"0", "1"})
      script += concat("timeout -k 1 100 ", test::replaced(command, "%r", rank), " > log.", rank, " 2>&1 & t",
                       rank, "=$!\n");
    // $p0 and $p1 are the ranks themselves: children of `timeout`, in which env has been replaced by the
    // program.
    for (const char* rank : {"0", "1"})
      script += concat("until p", rank, "=$(pgrep -P $t", rank, ") || ! kill -0 $t", rank,
                       "; do sleep 0.005; done\n");
    script += meanwhile + "\nbegan=$(date +%s.%N); wait $t0; a=$?; wait $t1; b=$?\n";
    const CommandResult result = run_command(script + "echo $a $b $began $(date +%s.%N)");
    std::istringstream words(result.out);
    Ends ends;
    double began = 0, ended = 0;
    words >> ends.first >> ends.second >> began >> ended;
    ends.seconds = ended - began;
    EXPECT_TRUE(words) << result.out << result.err;
    return ends;
  }

  /// Kills one of the two ranks at a random time and restarts both, `kills` times.
  void expect_same_end_after(int kills);

  /// A script that waits until the ranks have connected, or rank 0 has ended: nobody can know that a rank was
  /// lost before it came.
  static std::string until_connected() {
    return "until grep -q ' > rank 1' log.0 2>/dev/null || ! kill -0 $p0; do sleep 0.005; done\n";
  }
  /// A script that waits until the log shows a step, so that both ranks train, or until rank 0 has ended.
  static std::string until_trained(const std::string& log) {
    return concat("until grep -q '\"train\"' ", log, " 2>/dev/null || ! kill -0 $p0; do sleep 0.02; done\n");
  }

  /// Compares all files of the last checkpoint except those that contain folder names.
  void expect_same_checkpoint(const std::string& a, const std::string& b) const {
    const std::string left = *latest_checkpoint(dir_ / a), right = *latest_checkpoint(dir_ / b);
    EXPECT_EQ(fs::path(left).filename(), fs::path(right).filename());
    CheckpointReader(right).verify();
    const auto contents = checkpoint_contents(left);
    EXPECT_EQ(contents, checkpoint_contents(right));
    EXPECT_EQ(contents.size(), 4U);  // two ranks' tensors, state.json, losses.json
  }
};

// R1, R2: kill -9 at random times. Each restart must resume from a complete checkpoint. The losses of all
// steps and the last checkpoint must equal those of an undisturbed run, bit for bit.
TEST_F(PretrainRankFaults, AreKilledAtRandomTimesAndComeToTheSameEnd) {
  expect_same_end_after(10);
}
TEST_F(PretrainRankFaults, AreKilledTwoHundredTimesAndComeToTheSameEnd) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  expect_same_end_after(200);
}

void PretrainRankFaults::expect_same_end_after(int kills) {
  const std::string steps = kSaving + "--train-iters 40 ";
  ASSERT_EQ(start(environment(), steps + "--save whole --load whole"), 0) << file("log.0") << file("log.1");
  const std::string options = steps + "--save s --load s";
  std::mt19937 random(std::random_device{}());
  int killed = 0;
  int64_t done = 0;
  std::set<int64_t> reached;
  while (killed < kills) {
    const std::string rank = random() % 2 == 0 ? "$p0" : "$p1";
    const double seconds = 0.7 * static_cast<double>(random() % 1000) / 1000;
    const Ends ends = run_both(
        options, concat(until_connected(), "sleep ", seconds, "; kill -KILL ", rank, " 2>/dev/null"));
    const std::string logs = file("log.0") + file("log.1");
    if (ends.first == 0 && ends.second == 0) {  // the signal came too late; start over
      expect_same_checkpoint("whole", "s");
      fs::remove_all(dir_ / "s");
      done = 0;
      continue;
    }
    ++killed;
    for (const int code : {ends.first, ends.second})
      EXPECT_TRUE(code == 137 || code == 75 || code == 0) << code << logs;
    if (const auto latest = latest_checkpoint(dir_ / "s")) {
      const CheckpointReader reader(*latest);
      reader.verify();
      EXPECT_GE(reader.iteration(), done);
      done = reader.iteration();
      reached.insert(done);
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(start(environment(), options), 0) << file("log.0") << file("log.1");
  expect_same_checkpoint("whole", "s");
  EXPECT_GT(reached.size(), 2U) << "the kills came before any save";
}

// R5: one rank receives the signal, and all ranks save. The resumed run must end like an undisturbed one.
TEST_F(PretrainRankFaults, AreToldToEndAndComeToTheSameEnd) {
  const std::string steps = kSaving + "--train-iters 400 --save-interval 400 ";
  ASSERT_EQ(start(environment(), steps + "--save whole --load whole"), 0) << file("log.0") << file("log.1");
  const std::string options = steps + "--save s --load s --log-interval 1 --log-json s.jsonl";
  std::mt19937 random(std::random_device{}());
  int stopped = 0;
  for (const char* signal : {"TERM", "USR1"}) {
    fs::remove(dir_ / "s.jsonl");
    const double seconds = 0.2 * static_cast<double>(random() % 1000) / 1000;
    const Ends ends = run_both(options, concat(until_trained("s.jsonl"), "sleep ", seconds, "; kill -",
                                               signal, stopped == 0 ? " $p1" : " $p0"));
    EXPECT_EQ(ends.first, ends.second);
    if (ends.first == 0) break;  // the run ended before the signal
    EXPECT_EQ(ends.first, 75) << file("log.0") << file("log.1");
    EXPECT_NE(file("log.0").find(concat("stopped by SIG", signal, "; saved")), std::string::npos)
        << file("log.0");
    ++stopped;
  }
  EXPECT_GT(stopped, 0);
  EXPECT_EQ(start(environment(), options), 0) << file("log.0") << file("log.1");
  expect_same_checkpoint("whole", "s");
}

// R6 allows the timeout plus five seconds. A rank that was killed is noticed at once, one that was stopped
// after the timeout. The message must name the rank that was waited for, the call and the group.
TEST_F(PretrainRankFaults, NameTheRankThatIsKilledOrStopped) {
  constexpr int kTimeout = 3;
  const std::string options =
      concat("--train-iters 1000000 --eval-iters 0 --log-interval 1 --log-json s.jsonl ",
             "--distributed-timeout-seconds-after-init ", kTimeout);
  for (const std::string signal : {"KILL", "STOP"}) {
    fs::remove(dir_ / "s.jsonl");
    // The script kills the stopped process, which cannot end by itself.
    const Ends ends =
        run_both(options, concat(until_trained("s.jsonl"), "kill -", signal, " $p1\n",
                                 signal == "STOP" ? "stopped=$(date +%s.%N); wait $t0; a0=$?; "
                                                    "echo $stopped $(date +%s.%N) $a0 > times; kill -KILL $p1"
                                                  : ""));
    const std::string log = file("log.0");
    EXPECT_EQ(ends.second, 137);
    double seconds = ends.seconds;
    if (signal == "STOP") {
      std::istringstream times(file("times"));
      double began = 0, ended = 0;
      int code = 0;
      times >> began >> ended >> code;
      seconds = ended - began;
      EXPECT_EQ(code, 75) << log;
      EXPECT_GE(seconds, kTimeout - 0.5);
    } else {
      EXPECT_EQ(ends.first, 75) << log;
    }
    EXPECT_LT(seconds, kTimeout + 5);
    EXPECT_TRUE(test::Pattern("error: rank 0: .*rank 1 on [^ ]+").is_in(log)) << log;
    EXPECT_TRUE(test::Pattern(", call [0-9]+: ").is_in(log)) << log;
  }
}

// R7: both ranks skip the same steps and end with the same message.
TEST_F(PretrainRankFaults, EndTogetherWhenTheLossIsLost) {
  EXPECT_EQ(start(environment(), "--lr 1e30 --min-lr 1e30 --clip-grad 0 --eval-iters 0"), 65);
  for (const char* rank : {"0", "1"}) {
    const std::string log = file(concat("log.", rank));
    EXPECT_NE(log.find(concat("error: rank ", rank, ": iterations 3 to 5 were not finite")),
              std::string::npos)
        << log;
    EXPECT_NE(log.find("samples 8 to 19 of the training order"), std::string::npos) << log;
  }
}

TEST_F(PretrainRankFaults, KeepTheLastCheckpoints) {
  ASSERT_EQ(start(environment(), kSaving + "--save s"), 0) << file("log.0") << file("log.1");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir_ / "s")) names.insert(entry.path().filename());
  EXPECT_EQ(names,
            (std::set<std::string>{"iter_0000019", "iter_0000020", "latest_checkpointed_iteration.txt"}));
}

// The ranks may name the folder by different paths, but it must be the same folder.
TEST_F(PretrainRankFaults, SaveOnlyWhereAllSeeIt) {
  fs::create_directory(dir_ / "shared");
  fs::create_directory_symlink("shared", dir_ / "0");
  fs::create_directory_symlink("shared", dir_ / "1");
  EXPECT_EQ(start(environment(), "--save %r --load %r"), 0) << file("log.0") << file("log.1");
  EXPECT_EQ(file("shared/latest_checkpointed_iteration.txt"), "20");
  EXPECT_EQ(start(environment(), "--save own%r"), 64) << file("log.0") << file("log.1");
  EXPECT_NE(file("log.1").find("rank 1 does not see the files that rank 0 writes there"), std::string::npos)
      << file("log.1");
}

}  // namespace
}  // namespace megalith::test
