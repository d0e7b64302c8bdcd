#include "libcore/launch/server_ranks.h"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"
#include "tests/support/processes.h"

namespace megalith::test {
namespace {

using namespace std::chrono_literals;

RankCommand command(const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"sh", "-c", script}};
}

int run(const ServerRanks& ranks, const std::string& script) {
  const StopSignal stop;
  return run_server_ranks(ranks, command(script), stop).code;
}

TEST(ServerRanks, TellEachItsPlace) {
  const TempDir dir;
  const std::string script =
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $MEGALITH_JOB_TOKEN "
      "$CUDA_VISIBLE_DEVICES > " +
      dir / "$RANK";
  ASSERT_EQ(run({.first = 2,
                 .count = 2,
                 .world = 6,
                 .address = "10.0.0.1",
                 .port = 77,
                 .token = "t",
                 .devices = {"4", "5"}},
                script),
            0);
  EXPECT_EQ(read_file(dir / "2"), "2 6 0 2 10.0.0.1 77 t 4\n");
  EXPECT_EQ(read_file(dir / "3"), "3 6 1 2 10.0.0.1 77 t 5\n");
}

TEST(ServerRanks, GiveTheCodeOfTheFirstThatFailed) {
  EXPECT_EQ(run({.count = 2, .world = 2}, "[ $RANK = 0 ] && exit 65; sleep 0.3; exit 75"), 65);
  EXPECT_EQ(run({.count = 2, .world = 2}, "[ $RANK = 0 ] && exit 0; kill -KILL $$"), 75);
  const StopSignal stop;
  EXPECT_EQ(run_server_ranks({.count = 1}, {.program = "/no/such/program", .arguments = {"x"}}, stop).code,
            74);
}

TEST(ServerRanks, SayWhetherTheyWereStoppedOrRefused) {
  const StopSignal stop;
  const auto ends = [&](const std::string& script) {
    return run_server_ranks({.count = 2, .world = 2}, command(script), stop);
  };
  RankEnds both = ends("exit 79");
  EXPECT_EQ(both.code, 75);
  EXPECT_TRUE(both.stopped);
  EXPECT_EQ(both.refusal, 0);
  both = ends("[ $RANK = 0 ] && exit 75; sleep 0.3; exit 66");  // the others are told, and may end first
  EXPECT_EQ(both.code, 66);
  EXPECT_FALSE(both.stopped);
  EXPECT_EQ(both.refusal, 66);
}

// 75 only says that another rank failed; that one may end later.
TEST(ServerRanks, GiveTheCodeThatTellsWhy) {
  const ServerRanks two{.count = 2, .world = 2};
  for (const char* first : {"exit 75", "exit 79", "kill -KILL $$"})
    for (const int code : {64, 65, 66, 69, 70, 71, 74})
      EXPECT_EQ(run(two, concat("[ $RANK = 0 ] && ", first, "; sleep 0.2; exit ", code)), code) << first;
  EXPECT_EQ(run(two, "[ $RANK = 0 ] && exit 71; sleep 0.2; exit 75"), 71);
  EXPECT_EQ(run(two, "[ $RANK = 0 ] && exit 71; sleep 0.2; exit 70"), 71);
}

// Stopped ranks are left alone unless the command has a limit. A debugger's stop is none, however long.
TEST(ServerRanks, AreKilledWhenTheyAreStoppedForTooLong) {
  const StopSignal stop;
  const std::string script = "(sleep 1; kill -CONT $$) & kill -STOP $$; wait; exit 3";
  RankCommand stopped = command(script);
  EXPECT_EQ(run_server_ranks({}, stopped, stop).code, 3);
  stopped.stop_limit = 30;
  EXPECT_EQ(run_server_ranks({}, stopped, stop).code, 3);
  stopped.stop_limit = 0.2;
  const LogLines log;
  EXPECT_EQ(run_server_ranks({}, stopped, stop).code, 75);
  const std::string said = join(log.lines, "\n");
  EXPECT_NE(said.find("rank 0 has been stopped for 0.2 s: it counts as dead"), std::string::npos) << said;
}

TEST(ServerRanks, MayBeHeldByADebugger) {
  const TempDir dir;
  ForkedProcess starter([&] {
    const StopSignal stop;
    RankCommand held = command("echo $$ > " + dir / "id.tmp" + "; mv " + dir / "id.tmp " + dir / "id" +
                               "; while [ ! -e " + dir / "go" + " ]; do sleep 0.01; done; exit 3");
    held.stop_limit = 0.2;
    return std::to_string(run_server_ranks({}, held, stop).code);
  });
  ASSERT_TRUE(await_file(dir / "id"));
  const auto id = static_cast<pid_t>(*parse_int(trim(read_file(dir / "id"))));
  if (::ptrace(PTRACE_ATTACH, id, nullptr, nullptr) != 0) {
    write_file(dir / "go", "");
    GTEST_SKIP() << "processes may not be traced here";
  }
  std::this_thread::sleep_for(1s);
  ASSERT_EQ(::waitpid(id, nullptr, __WALL), id);
  ASSERT_EQ(::ptrace(PTRACE_DETACH, id, nullptr, nullptr), 0);
  write_file(dir / "go", "");
  EXPECT_EQ(starter.wait().text, "3");
}

TEST(ServerRanks, EndThoseThatContinueWithoutTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run({.count = 2, .world = 2}, "[ $RANK = 0 ] && exit 70; exec sleep 60"), 70);
  EXPECT_GT(seconds_since(begin), 9);  // the other rank gets ten seconds to end
  EXPECT_LT(seconds_since(begin), 30);
}

TEST(ServerRanks, PassASignalOn) {
  const TempDir dir;
  const std::string script = "trap 'echo got > " + dir / "$RANK" + "; exit 75' TERM; echo > " +
                             dir / "ready$RANK" + "; while :; do sleep 0.05; done";
  ForkedProcess starter([&] { return std::to_string(run({.count = 2, .world = 2}, script)); });
  for (const char* ready : {"ready0", "ready1"}) EXPECT_TRUE(await_file(dir / ready));
  ::kill(starter.id(), SIGTERM);
  EXPECT_EQ(starter.wait().text, "75");
  EXPECT_EQ(read_file(dir / "0"), "got\n");
  EXPECT_EQ(read_file(dir / "1"), "got\n");
}

// A rank that has not begun has the handlers of this process, which would swallow the signal.
TEST(ServerRanks, PassOnASignalThatComesBeforeTheyBegin) {
  for (int round = 0; round < 10; ++round)
    for (const int number : {SIGTERM, SIGUSR1, SIGINT}) {
      const StopSignal stop;
      std::raise(number);
      const auto begin = std::chrono::steady_clock::now();
      const RankEnds ends = run_server_ranks({.count = 4, .world = 4},
                                             {.program = "/bin/sleep", .arguments = {"sleep", "20"}}, stop);
      EXPECT_EQ(ends.code, 75) << number;
      EXPECT_LT(seconds_since(begin), 9) << number;
    }
}

// The ranks may not be in a terminal's group. The shells here see a SIGTERM; StopSignal would take it for
// SIGINT.
TEST(ServerRanks, PassAnInterruptOnAsWhatItIs) {
  const TempDir dir;
  const std::string script = "trap 'exit 75' TERM; trap 'exit 3' INT; echo > " + dir / "ready$RANK" +
                             "; while :; do sleep 0.05; done";
  ForkedProcess starter([&] { return std::to_string(run({.count = 2, .world = 2}, script)); });
  for (const char* ready : {"ready0", "ready1"}) EXPECT_TRUE(await_file(dir / ready));
  ::kill(starter.id(), SIGINT);
  EXPECT_EQ(starter.wait().text, "75");
}

}  // namespace
}  // namespace megalith::test
