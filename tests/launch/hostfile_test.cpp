#include "libcore/launch/hostfile.h"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"
#include "tests/launch/late_name.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

TEST(Hostfile, ReadsTheThreeForms) {
  const TempDir dir;
  write_file(
      dir / "hosts",
      "# two servers and one\n\nnode1 slots=4\n  node2:8  # of MPICH\r\nfe80::1\n[::1]:2\n[::2] slots=3");
  const auto hosts = read_hostfile(dir / "hosts");
  ASSERT_EQ(hosts.size(), 5U);
  EXPECT_EQ(hosts[0].host, "node1");
  EXPECT_EQ(hosts[0].slots, 4);
  EXPECT_EQ(hosts[1].host, "node2");
  EXPECT_EQ(hosts[1].slots, 8);
  EXPECT_EQ(hosts[2].host, "fe80::1");
  EXPECT_EQ(hosts[2].slots, 0);
  EXPECT_EQ(hosts[2].line, 5);
  EXPECT_EQ(hosts[3].host, "[::1]");
  EXPECT_EQ(hosts[3].slots, 2);
  EXPECT_EQ(hosts[4].host, "[::2]");
  EXPECT_EQ(hosts[4].slots, 3);
}

TEST(Hostfile, NamesTheLineThatIsNone) {
  const TempDir dir;
  for (const char* line : {"node slots=x", "node slots=0", "node cpus=3", "node:", "node:2 slots=2",
                           "[::1]:", "[::1]x2", "[::1]:2 slots=2"}) {
    write_file(dir / "hosts", std::string("node1\n") + line + "\n");
    try {
      read_hostfile(dir / "hosts");
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("hosts:2: \"" + std::string(line)), std::string::npos)
          << error.what();
    }
  }
  write_file(dir / "hosts", "# nobody\n");
  EXPECT_THROW(read_hostfile(dir / "hosts"), Error);
}

TEST(Hostfile, FindsThisMachine) {
  EXPECT_EQ(place_of_this_machine({{"203.0.113.1"}, {"127.0.0.1"}}, "f"), 1);
  EXPECT_THROW(place_of_this_machine({{"203.0.113.1"}, {"203.0.113.2"}}, "f"), Error);
  EXPECT_THROW(place_of_this_machine({{"127.0.0.1"}, {"localhost"}}, "f"), Error);
}

std::string complaint(const std::vector<HostfileEntry>& hosts) {
  try {
    (void)place_of_this_machine(hosts, "f");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "nothing was wrong";
}

TEST(Hostfile, NamesTheLinesOfHosts) {
  EXPECT_EQ(complaint({{"127.0.0.1", 1, 3}, {"203.0.113.1", 1, 5}, {"localhost", 1, 9}}),
            "f:3: \"127.0.0.1\" and f:9: \"localhost\" are both this machine; give --node-rank");
  EXPECT_EQ(complaint({{"203.0.113.1", 1, 3}, {"no\x1b.such.host.invalid", 1, 5}}),
            "f: none of its hosts is this machine, and 1 have no known address, the first at f:5: "
            "\"no\\x1b.such.host.invalid\"; give --node-rank");
  // A host without an address yet is skipped: another server may get its address later than this one.
  EXPECT_EQ(place_of_this_machine({{"no.such.host.invalid"}, {"127.0.0.1"}}, "f"), 1);
}

Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

// Kubernetes may publish names late, even this machine's own.
TEST(Hostfile, LooksNamesUpAgainUntilOneIsThisMachine) {
  const std::vector<HostfileEntry> hosts = {{"203.0.113.1", 1, 1}, {kLateName, 1, 2}, {"203.0.113.2", 1, 3}};
  look_ups_until_it_is_there = 2;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(place_of_this_machine(hosts, "f", in(std::chrono::seconds(20))), 1);
  EXPECT_LT(seconds_since(begin), 10);
  // Where the machine is one of the other hosts, nobody waits.
  look_ups_until_it_is_there = 1 << 20;
  EXPECT_EQ(place_of_this_machine({{kLateName}, {"127.0.0.1"}}, "f", in(std::chrono::minutes(10))), 1);
  // Nor where every name has an address.
  EXPECT_THROW(place_of_this_machine({{"203.0.113.1"}}, "f", in(std::chrono::minutes(10))), Error);
  EXPECT_LT(seconds_since(begin), 10);
}

TEST(Hostfile, LooksNamesUpUntilTheDeadline) {
  look_ups_until_it_is_there = 1 << 20;
  const auto begin = std::chrono::steady_clock::now();
  try {
    (void)place_of_this_machine({{"203.0.113.1", 1, 3}, {kLateName, 1, 5}}, "f",
                                in(std::chrono::milliseconds(1500)));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "f: none of its hosts is this machine, and 1 have no known address, the first at f:5: "
              "\"late.host.invalid\"; give --node-rank");
  }
  EXPECT_GT(seconds_since(begin), 1.4);
  EXPECT_LT(seconds_since(begin), 6);
}

// A silent name server takes long for each name, and there are many.
TEST(Hostfile, EndsARoundAtTheDeadlineAndAtASignal) {
  std::vector<HostfileEntry> hosts;
  for (int line = 1; line <= 300; ++line) hosts.push_back({kSlowName, 1, line});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW((void)place_of_this_machine(hosts, "f", in(std::chrono::seconds(1))), Error);
  EXPECT_LT(seconds_since(begin), 5);
  for (const int signal : {SIGTERM, SIGINT}) {
    const StopSignal stop;
    std::thread sender([signal] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(::getpid(), signal);
    });
    EXPECT_THROW((void)place_of_this_machine(hosts, "f", in(std::chrono::minutes(10))), Stopped);
    sender.join();
  }
  EXPECT_LT(seconds_since(begin), 15);
}

TEST(Hostfile, ReadsAMillionLinesAtOnce) {
  const TempDir dir;
  std::string text;
  constexpr int kLines = 1'000'000;
  for (int i = 0; i + 1 < kLines; ++i)
    text += "203." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
            std::to_string(i & 255) + " slots=2\n";
  write_file(dir / "hosts", text + "127.0.0.1 slots=3");
  const auto begin = std::chrono::steady_clock::now();
  const auto hosts = read_hostfile(dir / "hosts");
  ASSERT_EQ(hosts.size(), static_cast<size_t>(kLines));
  EXPECT_EQ(hosts.back().line, kLines);
  EXPECT_EQ(hosts.back().slots, 3);
  EXPECT_EQ(place_of_this_machine(hosts, dir / "hosts"), kLines - 1);
  EXPECT_LT(seconds_since(begin), 10);  // it takes 1 to 2 seconds
}

// A binary file may be one long line, with control characters.
TEST(Hostfile, TruncatesTheLineThatItShows) {
  const TempDir dir;
  write_file(dir / "hosts", "node1\nnode2 \x1b[2J" + std::string(10'000'000, 'x'));
  try {
    read_hostfile(dir / "hosts");
    ADD_FAILURE();
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("hosts:2: \"node2 \\x1b[2Jxxx"), std::string::npos) << what;
    EXPECT_LT(what.size(), 1000U);
  }
}

}  // namespace
}  // namespace megalith::test
