#include "libcore/launch/server_ranks.h"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/base/process.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/processes.h"

namespace megalith::test {
namespace {

using namespace std::chrono_literals;

int run(const ServerRanks& ranks, const std::string& script) {
  const StopSignal stop;
  return run_server_ranks(ranks, "/bin/sh", {"sh", "-c", script}, stop);
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
  EXPECT_EQ(run_server_ranks({.count = 1}, "/no/such/program", {"x"}, stop), 74);
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
  while (!file_exists(dir / "ready0") || !file_exists(dir / "ready1")) std::this_thread::sleep_for(10ms);
  ::kill(starter.id(), SIGTERM);
  EXPECT_EQ(starter.wait().text, "75");
  EXPECT_EQ(read_file(dir / "0"), "got\n");
  EXPECT_EQ(read_file(dir / "1"), "got\n");
}

}  // namespace
}  // namespace megalith::test
