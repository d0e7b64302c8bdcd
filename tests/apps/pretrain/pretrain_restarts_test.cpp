// Ranks that --restarts starts again (docs/distributed.md). tests/apps/bench_test.cpp lets many faults befall
// one run.
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/apps/pretrain/pretrain_ranks.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PretrainRestarts : public PretrainRanks {
 protected:
  const std::string kSteps = "--train-iters 300 --eval-iters 0 --log-interval 1 --save s ";

  /// Runs the command and, once its output has `mark`, sends a signal to one of its ranks. Its output is in
  /// "out".
  int disturbed(const std::string& options, const std::string& mark, const std::string& signal) const {
    return run_command(concat("cd ", dir_.path().string(), "\n", app("pretrain"), " ", kModel, kSteps,
                              options, " > out 2>&1 & a=$!\nuntil grep -q '", mark,
                              "' out || ! kill -0 $a; do sleep 0.01; done\nkill -", signal,
                              " $(pgrep -P $a | tail -n 1)\nwait $a"))
        .code;
  }
  /// What a run's last checkpoint holds: parameters, the optimizer's state, progress.
  std::map<std::string, std::string> result(const std::string& save) const {
    return checkpoint_contents(dir_ / (save + "/iter_0000300"));
  }
  bool said(const std::string& text) const { return file("out").find(text) != std::string::npos; }
};

TEST_F(PretrainRestarts, ResumeFromTheNewestCheckpoint) {
  const std::string shared = "--use-distributed-optimizer --gpus 0,1 ";
  ASSERT_EQ(train(kSteps + shared + "--save calm").code, 0);
  // The command itself has no --load: each restart adds it.
  ASSERT_EQ(disturbed(shared + "--save-interval 10 --restarts 2", "iteration  *30/", "KILL"), 0)
      << file("out");
  EXPECT_TRUE(said("restart 1 of at most 2: all ranks start again, from the newest checkpoint (--load s)"))
      << file("out");
  EXPECT_EQ(result("s"), result("calm"));
  for (const char* log : {"log/workerlog.0", "log/workerlog.1"}) {
    EXPECT_NE(file(log).find(" iteration        5/"), std::string::npos) << file(log);  // of the first start
    EXPECT_NE(file(log).find(" iteration      300/"), std::string::npos) << file(log);
  }
}

// An earlier run's checkpoints in the folder are not this run's.
TEST_F(PretrainRestarts, BeginAgainWhileThereIsNoCheckpointOfTheirOwn) {
  ASSERT_EQ(train(kSteps + "--gpus 0,1 --train-iters 5").code, 0);
  ASSERT_EQ(disturbed("--gpus 0,1 --overwrite-output-dir --restarts 2", "iteration  *30/", "KILL"), 0)
      << file("out");
  EXPECT_TRUE(said("all ranks start again, where the run began: there is no checkpoint yet")) << file("out");
  const std::string log = file("log/workerlog.0");
  const size_t first = log.find(" iteration        1/");
  EXPECT_NE(log.find(" iteration        1/", first + 1), std::string::npos) << log;
}

// A signal to a single rank's process is a stop of the run, and not a failure.
TEST_F(PretrainRestarts, DoNotFollowAStop) {
  EXPECT_EQ(disturbed("--gpus 0,1 --train-iters 1000000 --restarts 2", "iteration  *30/", "USR1"), 75);
  EXPECT_TRUE(said("stopped by SIGUSR1; saved; to resume, give --load s")) << file("out");
  EXPECT_FALSE(said("restart 1")) << file("out");
}

TEST_F(PretrainRestarts, AreRefusedWhereTheyCouldNotResume) {
  const auto refused = [&](const std::string& options, const std::string& part) {
    const CommandResult result = train("--restarts 2 " + options);
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.all();
    EXPECT_NE(result.all().find(part), std::string::npos) << result.all();
  };
  refused("--save s --nproc 2", "--restarts 2 is for ranks that are processes");
  refused("--save s", "--restarts 2 is for ranks that are processes");
  refused("--gpus 0,1", "--restarts 2 without --save");
  refused("--gpus 0,1 --save s --checkpoint 5", "--restarts 2 and --checkpoint 5 contradict each other");
  EXPECT_EQ(run_command("cd " + dir_.path().string() + " && RANK=0 WORLD_SIZE=1 TORCHELASTIC_RUN_ID=r " +
                        app("pretrain") + " " + kModel + "--restarts 2 --save s")
                .code,
            exit_code(ErrorKind::kUsage));
}

}  // namespace
}  // namespace megalith::test
