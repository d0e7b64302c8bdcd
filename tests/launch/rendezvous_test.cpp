#include "libcore/launch/rendezvous.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/launch/rank_hello.h"
#include "libcore/launch/socket.h"
#include "tests/support/processes.h"

namespace megalith::test {
namespace {

using namespace std::chrono_literals;

RendezvousOptions options_of(int rank, int world, int port) {
  Json options = Json::object();
  options.set("lr", 0.1);
  options.set("seed", 1);
  return {.launch = {.rank = rank, .world = world, .address = "127.0.0.1", .port = port, .token = "job"},
          .options = options,
          .timeout = 10s};
}

std::string met(const RendezvousOptions& options, int exchanges = 1) {
  const Rendezvous rendezvous = join_rendezvous(options);
  std::string all;
  for (int i = 0; i < exchanges; ++i)
    for (const std::string& part :
         rendezvous.exchange("rank " + std::to_string(options.launch.rank) + std::string(10, '\0')))
      all += part.substr(0, 6) + ";";
  return all + rendezvous.interface_address;
}

/// Until somebody listens there.
Socket knock(int port) {
  return connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + 10s);
}

TEST(Rendezvous, ExchangesInRankOrderAgainAndAgain) {
  for (const int world : {2, 5}) {
    const int port = free_port();
    std::string once;
    for (int rank = 0; rank < world; ++rank) once += "rank " + std::to_string(rank) + ";";
    const auto results =
        run_processes(world, [&](int rank) { return met(options_of(rank, world, port), 3); });
    for (const ProcessResult& result : results) {
      EXPECT_EQ(result.code, 0) << result.text;
      EXPECT_EQ(result.text, once + once + once + "127.0.0.1");
    }
  }
}

TEST(Rendezvous, ExchangesMoreThanASocketHolds) {
  const int port = free_port();
  const auto results = run_processes(3, [&](int rank) {
    const Rendezvous rendezvous = join_rendezvous(options_of(rank, 3, port));
    size_t bytes = 0;
    for (const std::string& part :
         rendezvous.exchange(std::string(size_t{8} << 20, static_cast<char>('a' + rank))))
      bytes += part.size();
    return std::to_string(bytes);
  });
  for (const ProcessResult& result : results) EXPECT_EQ(result.text, std::to_string(3 * (8 << 20)));
}

TEST(Rendezvous, RefusesAStrangerAndGoesOn) {
  const int port = free_port();
  ForkedProcess first([&] { return met(options_of(0, 2, port)); });
  const Socket talker = knock(port), mute = knock(port);
  talker.send("GET / HTTP/1.0\r\n\r\n", std::chrono::steady_clock::now() + 1s);
  { const Socket leaver = knock(port); }
  std::this_thread::sleep_for(300ms);
  ForkedProcess second([&] { return met(options_of(1, 2, port)); });
  const ProcessResult result = first.wait();
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_EQ(second.wait().code, 0);
  EXPECT_NE(result.log.find("refused 127.0.0.1: not a rank of this program: it began with \"GET / HT\""),
            std::string::npos)
      << result.log;
}

// Each is rejected with its address, and the run with the right rank starts.
TEST(Rendezvous, RefusesAnotherTokenWorldVersionAndADuplicateRank) {
  const int port = free_port();
  ForkedProcess first([&] { return met(options_of(0, 3, port)); });
  ForkedProcess second([&] { return met(options_of(1, 3, port)); });
  (void)knock(port);
  std::this_thread::sleep_for(300ms);
  const auto refused = [&](RendezvousOptions options, const std::string& part) {
    ForkedProcess other([options] { return met(options); });
    const ProcessResult result = other.wait();
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.text;
    EXPECT_NE(result.text.find(part), std::string::npos) << result.text;
  };
  RendezvousOptions other = options_of(2, 3, port);
  other.launch.token = "another job";
  refused(other, "to rank 2: it has another job token");
  other.launch.token = "";
  refused(other, "to rank 2: it has another job token");
  refused(options_of(2, 4, port), "to rank 2: it counts 4 ranks, rank 0 counts 3");
  refused(options_of(1, 3, port), "to rank 1: there is already a rank 1, from 127.0.0.1");
  const std::string hello =
      encode_hello({.version = "0.0", .token = token_digest("job"), .rank = 2, .world = 3});
  const Socket old = knock(port);
  old.send(hello, std::chrono::steady_clock::now() + 1s);
  const std::string wanted = R"({"exit_code": 64, "message": "it has version 0.0)";
  EXPECT_EQ(old.receive(8 + wanted.size(), std::chrono::steady_clock::now() + 5s).substr(8), wanted);

  ForkedProcess third([&] { return met(options_of(2, 3, port)); });
  EXPECT_EQ(third.wait().code, 0);
  EXPECT_EQ(second.wait().code, 0);
  const ProcessResult result = first.wait();
  EXPECT_EQ(result.code, 0) << result.text;
  for (const char* part : {"refused rank 2 of 127.0.0.1: it has another job token", "it counts 4 ranks",
                           "there is already a rank 1", "it has version 0.0"})
    EXPECT_NE(result.log.find(part), std::string::npos) << part << "\n" << result.log;
}

TEST(Rendezvous, NamesTheRankAndTheOptionThatDiffer) {
  const int port = free_port();
  const auto results = run_processes(3, [&](int rank) {
    RendezvousOptions options = options_of(rank, 3, port);
    if (rank == 2) options.options.set("seed", 2);
    // The others are there before it, so that they wait.
    if (rank == 2) std::this_thread::sleep_for(500ms);
    return met(options);
  });
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.text;
    EXPECT_NE(result.text.find("--seed is 1 on rank 0 and 2 on rank 2"), std::string::npos) << result.text;
    EXPECT_EQ(result.text.find("--lr"), std::string::npos) << result.text;
  }
}

TEST(Rendezvous, NamesTheRanksThatDoNotCome) {
  const int port = free_port();
  const auto begin = std::chrono::steady_clock::now();
  const auto results = run_processes(2, [&](int rank) {
    RendezvousOptions options = options_of(rank, 4, port);
    options.timeout = 1s;
    return met(options);
  });
  EXPECT_LT(seconds_since(begin), 6);
  for (const ProcessResult& result : results) {  // rank 0 tells the one that is there
    EXPECT_EQ(result.code, exit_code(ErrorKind::kComm));
    EXPECT_NE(result.text.find("ranks 2, 3 did not connect to 127.0.0.1:" + std::to_string(port)),
              std::string::npos)
        << result.text;
  }
}

TEST(Rendezvous, NamesRankZeroWhenItIsMissing) {
  const int port = free_port();
  RendezvousOptions options = options_of(1, 2, port);
  options.timeout = 500ms;
  ForkedProcess alone([&] { return met(options); });
  const ProcessResult result = alone.wait();
  EXPECT_EQ(result.code, exit_code(ErrorKind::kComm));
  EXPECT_NE(result.text.find("rank 1 waited for rank 0 at 127.0.0.1:" + std::to_string(port)),
            std::string::npos)
      << result.text;
}

// A rank that its launcher starts again takes the place that it left.
TEST(Rendezvous, LetsARankComeAgain) {
  const int port = free_port();
  ForkedProcess first([&] { return met(options_of(0, 3, port)); });
  {
    ForkedProcess killed([&] { return met(options_of(1, 3, port)); });
    (void)knock(port);
    std::this_thread::sleep_for(300ms);
  }
  ForkedProcess again([&] { return met(options_of(1, 3, port)); });
  ForkedProcess last([&] { return met(options_of(2, 3, port)); });
  const ProcessResult result = first.wait();
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.log.find("rank 1 disconnected before all ranks had joined"), std::string::npos)
      << result.log;
  EXPECT_EQ(again.wait().code, 0);
  EXPECT_EQ(last.wait().code, 0);
}

TEST(Rendezvous, NamesARankThatDiesBeforeAnExchange) {
  const int port = free_port();
  const auto results = run_processes(3, [&](int rank) {
    const Rendezvous rendezvous = join_rendezvous(options_of(rank, 3, port));
    if (rank == 2) ::_exit(9);
    (void)rendezvous.exchange("x");
    return std::string();
  });
  EXPECT_EQ(results[0].code, exit_code(ErrorKind::kComm));
  EXPECT_NE(results[0].text.find("rank 2: 127.0.0.1 closed the connection"), std::string::npos)
      << results[0].text;
  EXPECT_EQ(results[1].code, exit_code(ErrorKind::kComm)) << results[1].text;
}

// What the system says about listening sockets: hexadecimal, in the machine's byte order.
TEST(Rendezvous, ListensOnOneInterfaceAlone) {
  const int port = free_port();
  ForkedProcess first([&] { return met(options_of(0, 2, port)); });
  (void)knock(port);
  std::ostringstream wanted;
  wanted << std::hex << std::uppercase << port;
  std::vector<std::string> listeners;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      constexpr const char* kListening = "0A";
      if (state == kListening && local.ends_with(":" + wanted.str())) listeners.push_back(local);
    }
  }
  ASSERT_EQ(listeners.size(), 1U);
  EXPECT_EQ(listeners[0], "0100007F:" + wanted.str());  // 127.0.0.1, not 00000000
  ForkedProcess second([&] { return met(options_of(1, 2, port)); });
  EXPECT_EQ(second.wait().code, 0);
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_THROW(connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + 200ms),
               Error);  // it is closed
}

TEST(Rendezvous, BindsTheInterfaceThatIsNamed) {
  const int port = free_port();
  const auto results = run_processes(2, [&](int rank) {
    RendezvousOptions options = options_of(rank, 2, port);
    options.interface_name = rank == 0 ? "lo" : "";
    return met(options);
  });
  for (const ProcessResult& result : results) EXPECT_EQ(result.text, "rank 0;rank 1;127.0.0.1");
  RendezvousOptions options = options_of(0, 2, port);
  options.interface_name = "nothing0";
  ForkedProcess other([&] { return met(options); });
  const ProcessResult result = other.wait();
  EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage));
  EXPECT_NE(result.text.find("GLOO_SOCKET_IFNAME=\"nothing0\""), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("there are lo"), std::string::npos) << result.text;
}

}  // namespace
}  // namespace megalith::test
