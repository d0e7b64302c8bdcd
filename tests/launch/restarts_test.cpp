#include "libcore/launch/restarts.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"
#include "tests/support/processes.h"

namespace megalith::test {
namespace {

using Words = std::vector<std::string>;

/// Ranks that are shell scripts. $START is the number of the start; each start adds a line to "starts", which
/// holds the words that the command was given.
class Restarts : public testing::Test {
 protected:
  RankCommand command(const std::string& script) const {
    return {.program = "/bin/sh",
            .arguments = {"sh", "-c",
                          "START=$MEGALITH_STARTED_RANK; [ $RANK = 0 ] && echo \"$@\" >> " + dir_ / "starts" +
                              "; " + script,
                          "sh"}};
  }
  /// `checkpoints`: what new_checkpoint() returns after each failure; nothing after the last.
  int run(int most, const std::string& script, std::vector<std::optional<Words>> checkpoints = {}) {
    const StopSignal stop;
    const LogLines log;
    size_t failures = 0;
    const auto next = [&]() -> std::optional<Words> {
      return failures < checkpoints.size() ? checkpoints[failures++] : std::nullopt;
    };
    const int code = run_restarted_ranks({.count = 2, .world = 2}, command(script), {most, next}, stop);
    log_ = join(log.lines, "\n");
    return code;
  }
  std::string starts() const { return read_file(dir_ / "starts"); }
  bool said(const std::string& text) const { return log_.find(text) != std::string::npos; }

  TempDir dir_;
  std::string log_;
};

TEST_F(Restarts, AddTheWordsOfTheNewestCheckpoint) {
  EXPECT_EQ(run(9, "[ $START = 5 ] || kill -KILL $$",
                {std::nullopt, Words{"--load", "a b"}, std::nullopt, Words{"--checkpoint", "8"}}),
            0);
  EXPECT_EQ(starts(), "\n\n--load a b\n--load a b\n--checkpoint 8\n");
  EXPECT_TRUE(said("restart 1 of at most 9: all ranks start again, where the run began")) << log_;
  EXPECT_TRUE(
      said("restart 4 of at most 9: all ranks start again, from the newest checkpoint (--checkpoint 8)"))
      << log_;
}

TEST_F(Restarts, AreNotMoreThanGiven) {
  EXPECT_EQ(run(2, "exit 70", {Words{}, Words{}, Words{}}), 70);
  EXPECT_EQ(starts(), "\n\n\n");
  EXPECT_TRUE(said("not started again: --restarts 2 allows no more")) << log_;
}

TEST_F(Restarts, EndAfterThreeStartsWithoutACheckpoint) {
  EXPECT_EQ(run(9, "exit 74"), 74);
  EXPECT_EQ(starts(), "\n\n\n");
  EXPECT_TRUE(said("not started again: they failed 3 times without a new checkpoint")) << log_;
  std::filesystem::remove(dir_ / "starts");
  EXPECT_EQ(run(9, "exit 74", {std::nullopt, std::nullopt, Words{}}), 74);
  EXPECT_EQ(starts(), "\n\n\n\n\n\n");
}

// 64 to 66 say that the same command would fail again, also when a rank that only noticed ends first.
TEST_F(Restarts, DoNotRepeatWhatWouldFailAgain) {
  for (const char* code : {"64", "65", "66"}) {
    std::filesystem::remove(dir_ / "starts");
    EXPECT_EQ(run(9, concat("[ $RANK = 0 ] && exit 75; sleep 0.2; exit ", code)), *parse_int(code));
    EXPECT_EQ(starts(), "\n");
    EXPECT_TRUE(said(concat("one ended with exit code ", code))) << log_;
  }
}

TEST_F(Restarts, DoNotFollowAStop) {
  EXPECT_EQ(run(9, "exit 79", {Words{}}), 75);  // a rank was told to stop, here or on another server
  EXPECT_EQ(starts(), "\n");
  ForkedProcess starter([&] {
    return std::to_string(
        run(9, "trap 'exit 75' TERM; echo > " + dir_ / "ready$RANK" + "; while :; do sleep 0.05; done",
            {Words{}}));
  });
  for (const char* ready : {"ready0", "ready1"}) EXPECT_TRUE(await_file(dir_ / ready));
  ::kill(starter.id(), SIGTERM);
  EXPECT_EQ(starter.wait().text, "75");
  EXPECT_EQ(starts(), "\n\n");
}

// Another program may have taken a port that was free when the run began.
TEST_F(Restarts, TakeAnotherPortIfNobodyNamedIt) {
  const StopSignal stop;
  const std::string script = "echo $MASTER_PORT >> " + dir_ / "ports" + "; [ $START = 2 ] || exit 75";
  for (const bool any : {false, true}) {
    std::filesystem::remove(dir_ / "ports");
    const ServerRanks ranks{.address = "127.0.0.1", .port = 1, .any_port = any};
    const RestartRules rules{.most = 1, .new_checkpoint = [] { return std::optional(Words{}); }};
    EXPECT_EQ(run_restarted_ranks(ranks, command(script), rules, stop), 0);
    const std::vector<std::string> ports = split(read_file(dir_ / "ports"), '\n');
    EXPECT_EQ(ports[0], "1");
    EXPECT_EQ(ports[1] == "1", !any) << ports[1];
  }
}

}  // namespace
}  // namespace megalith::test
