#include "libcore/launch/rendezvous.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/hash/hmac.h"
#include "libcore/hash/sha256.h"
#include "libcore/launch/rank_channel.h"
#include "libcore/launch/rank_hello.h"
#include "libcore/launch/socket.h"
#include "tests/support/compiler.h"
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

/// Connects to a local port, waiting until somebody listens there.
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
    RendezvousOptions options = options_of(rank, 3, port);
    options.max_message = size_t{8} << 20;
    const Rendezvous rendezvous = join_rendezvous(options);
    size_t bytes = 0;
    for (const std::string& part :
         rendezvous.exchange(std::string(size_t{8} << 20, static_cast<char>('a' + rank))))
      bytes += part.size();
    return std::to_string(bytes);
  });
  for (const ProcessResult& result : results) EXPECT_EQ(result.text, std::to_string(3 * (8 << 20)));
}

TEST(Rendezvous, RefusesAStrangerAndContinues) {
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

// Each wrong rank is refused, with its address in the log, and the run starts with the right one.
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
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  auto old = greet_first_rank(knock(port), "job", deadline);
  ASSERT_TRUE(old);
  old->send(encode_hello({.version = "0.0", .rank = 2, .world = 3}), deadline);
  const std::string wanted = R"({"exit_code": 64, "message": "it has version 0.0)";
  EXPECT_EQ(old->receive(kMaxAnswer, deadline).substr(0, wanted.size()), wanted);

  ForkedProcess third([&] { return met(options_of(2, 3, port)); });
  EXPECT_EQ(third.wait().code, 0);
  EXPECT_EQ(second.wait().code, 0);
  const ProcessResult result = first.wait();
  EXPECT_EQ(result.code, 0) << result.text;
  for (const char* part : {"refused 127.0.0.1: it has another job token", "it counts 4 ranks",
                           "there is already a rank 1", "it has version 0.0"})
    EXPECT_NE(result.log.find(part), std::string::npos) << part << "\n" << result.log;
}

TEST(Rendezvous, NamesTheRankAndTheOptionThatDiffer) {
  const int port = free_port();
  const auto results = run_processes(3, [&](int rank) {
    RendezvousOptions options = options_of(rank, 3, port);
    if (rank == 2) options.options.set("seed", 2);
    // Rank 2 joins last, so the others wait for it.
    if (rank == 2) std::this_thread::sleep_for(500ms);
    return met(options);
  });
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.text;
    EXPECT_NE(result.text.find("--seed is 1 on rank 0 and 2 on rank 2"), std::string::npos) << result.text;
    EXPECT_EQ(result.text.find("--lr"), std::string::npos) << result.text;
  }
}

// The third of 8 ranks to join has other options; the rest join later, one by one.
TEST(Rendezvous, TellsRanksThatComeLaterThatTheOptionsDiffer) {
  const int port = free_port();
  constexpr int kWorld = 8, kOther = 3;
  const auto begin = std::chrono::steady_clock::now();
  const auto results = run_processes(kWorld, [&](int rank) {
    RendezvousOptions options = options_of(rank, kWorld, port);
    options.timeout = 40s;
    if (rank == kOther) options.options.set("seed", 2);
    if (rank == kOther) std::this_thread::sleep_for(200ms);
    if (rank > kOther) std::this_thread::sleep_for(400ms * (rank - kOther));
    return met(options);
  });
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.text;
    EXPECT_NE(result.text.find("--seed is 1 on rank 0 and 2 on rank 3"), std::string::npos) << result.text;
  }
  EXPECT_NE(results[0].log.find("ranks that join later are told, too"), std::string::npos) << results[0].log;
  EXPECT_LT(seconds_since(begin), 10);
}

// Each rank that joins later has differences of its own.
TEST(Rendezvous, BoundsWhatItSaysOfOptionsThatDiffer) {
  const int port = free_port();
  const auto results = run_processes(5, [&](int rank) {
    RendezvousOptions options = options_of(rank, 5, port);
    if (rank > 0) options.options.set("data", std::string(50000, static_cast<char>('a' + rank)) + "\x1b[2J");
    return met(options);
  });
  for (const ProcessResult& result : results) {
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.text;
    EXPECT_LT(result.text.size(), 4200U);
    EXPECT_EQ((result.text + result.log).find('\x1b'), std::string::npos);
  }
}

/// Keeps `size` connections of strangers open, and replaces each one that is closed.
std::string crowd(int port, size_t size) {
  enum Kind { kIdle, kGarbage, kSlow, kGreets };
  std::vector<Socket> sockets(size);
  while (true) {
    for (size_t i = 0; i < size; ++i) try {
        const auto now = std::chrono::steady_clock::now();
        Socket& socket = sockets[i];
        if (socket.open() && !socket.receive_some(256)) socket = {};
        const bool fresh = !socket.open();
        if (fresh) socket = connect_to("127.0.0.1", port, now + 1s);
        if (fresh && i % 4 == kGarbage) socket.send(random_bytes(64), now);
        if (fresh && i % 4 == kGreets) socket.send(std::string(kGreeting) + random_bytes(kNonceBytes), now);
        if (i % 4 == kSlow) socket.send(fresh ? "M" : "G", now);
      } catch (const Error&) {
      }
    std::this_thread::sleep_for(20ms);
  }
}

/// Limits the number of files that the process may open.
void limit_files(rlim_t files) {
  const rlimit limit{files, files};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(Rendezvous, ConnectsInACrowdOfAThousandStrangers) {
  for (const rlim_t files : {rlim_t{4096}, rlim_t{256}}) {
    const int port = free_port();
    ForkedProcess first([&] {
      limit_files(files);
      return met(options_of(0, 4, port));
    });
    (void)knock(port);
    std::vector<ForkedProcess> crowds;
    for (int i = 0; i < 4; ++i) crowds.emplace_back([&] { return crowd(port, 250); });
    std::this_thread::sleep_for(1500ms);  // until all strangers are connected
    const auto begin = std::chrono::steady_clock::now();
    std::vector<ForkedProcess> ranks;
    for (int rank = 1; rank < 4; ++rank)
      ranks.emplace_back([&, rank] {
        limit_files(files);
        return met(options_of(rank, 4, port));
      });
    for (ForkedProcess& rank : ranks) {
      const ProcessResult result = rank.wait();
      EXPECT_EQ(result.code, 0) << result.text;
    }
    const ProcessResult result = first.wait();
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_LT(seconds_since(begin), 5) << files;
    EXPECT_LT(result.log.size(), 10000U);  // although it refused thousands of connections
    EXPECT_NE(result.log.find("more connections"), std::string::npos) << result.log;
  }
}

TEST(Rendezvous, SaysWhenItMayNotOpenEnoughFiles) {
  if (kAddressSanitizer) GTEST_SKIP() << "the sanitizer opens files to look at objects";
  const int port = free_port();
  ForkedProcess first([&] {
    limit_files(12);
    return met(options_of(0, 40, port));
  });
  std::vector<ForkedProcess> ranks;
  for (int rank = 1; rank < 40; ++rank)
    ranks.emplace_back([&, rank] {
      RendezvousOptions options = options_of(rank, 40, port);
      options.timeout = 3s;
      return met(options);
    });
  const ProcessResult result = first.wait();
  EXPECT_EQ(result.code, exit_code(ErrorKind::kIo)) << result.text;
  EXPECT_NE(result.text.find("raise the limit (ulimit -n)"), std::string::npos) << result.text;
}

// What a rank sent on one connection proves nothing on another: neither the token nor its hash is sent.
TEST(Rendezvous, IsNotDeceivedByAReplay) {
  const int port = free_port();
  ForkedProcess first([&] { return met(options_of(0, 3, port)); });
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  std::string said;
  {  // a proxy that listens sits between rank 1 and rank 0
    const Socket listener = listen_on("127.0.0.1", 0);
    ForkedProcess rank([&] { return met(options_of(1, 3, listener.local_port())); });
    Socket heard;
    while (!heard.open()) heard = listener.accept();
    const Socket forward = knock(port);
    said = heard.receive(kGreetingBytes, deadline);
    forward.send(said, deadline);
    heard.send(forward.receive(kGreetingBytes, deadline), deadline);
    std::string hello = heard.receive(8, deadline);
    const auto length = static_cast<unsigned char>(hello[0]) + 256U * static_cast<unsigned char>(hello[1]);
    hello += heard.receive(length + 64, deadline);
    forward.send(hello, deadline);
    EXPECT_EQ(forward.receive(8, deadline), std::string(8, '\0'));  // welcome
    said += hello;
  }
  EXPECT_EQ(said.find("\"job\": \"job\""), std::string::npos) << said;
  EXPECT_EQ(said.find(sha256_hex("job")), std::string::npos);
  const Socket spy = knock(port);
  spy.send(said, deadline);
  (void)spy.receive(kGreetingBytes, deadline);
  EXPECT_EQ(spy.receive(ProvenMessages::unproven().size(), deadline), ProvenMessages::unproven());
  ForkedProcess second([&] { return met(options_of(1, 3, port)); });
  ForkedProcess third([&] { return met(options_of(2, 3, port)); });
  EXPECT_EQ(third.wait().code, 0);
  EXPECT_EQ(second.wait().code, 0);
  const ProcessResult result = first.wait();
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.log.find("refused 127.0.0.1: it has another job token (MEGALITH_JOB_TOKEN)"),
            std::string::npos)
      << result.log;
}

/// How rank 1 ends when `first` answers its hello in place of rank 0.
ProcessResult answered_by(const std::function<void(const Socket&)>& first) {
  const Socket listener = listen_on("127.0.0.1", 0);
  RendezvousOptions options = options_of(1, 2, listener.local_port());
  options.timeout = 3s;
  ForkedProcess rank([options] { return met(options); });
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  for (;;) {
    const Socket socket = listener.accept();
    if (!socket.open() && std::chrono::steady_clock::now() > deadline) break;
    if (!socket.open()) continue;
    first(socket);
    std::this_thread::sleep_for(100ms);  // until the rank has read it
    break;
  }
  return rank.wait();
}

/// Exchanges greetings as rank 0 does. Returns the messages that prove that this side knows `token`.
ProvenMessages greeted(const Socket& socket, std::string_view token) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  const std::string theirs = socket.receive(kGreetingBytes, deadline);
  const std::string mine = std::string(kGreeting) + random_bytes(kNonceBytes);
  socket.send(mine, deadline);
  return ProvenMessages(token, {.first = mine, .other = theirs}, RankSide::kFirst);
}

TEST(Rendezvous, BelievesNobodyWhoPosesAsRankZero) {
  const auto soon = [] { return std::chrono::steady_clock::now() + 2s; };
  ProcessResult result = answered_by([&](const Socket& socket) {
    ProvenMessages messages = greeted(socket, "another token");
    for (int i = 0; i < 2; ++i) socket.send(messages.packed(kWelcome), soon());
  });
  EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage));
  EXPECT_NE(result.text.find("to rank 1: it has another job token"), std::string::npos) << result.text;
  result = answered_by([&](const Socket& socket) { socket.send("\x1b[2JHTTP/1.1 400", soon()); });
  EXPECT_EQ(result.code, exit_code(ErrorKind::kComm));
  EXPECT_NE(result.text.find("is not rank 0 of this program: it began with \"\\x1b[2JHTTP\""),
            std::string::npos)
      << result.text;
}

// A peer that announces or sends a message of 4 GiB costs no memory.
TEST(Rendezvous, TakesABoundedMessageOfRankZero) {
  const auto soon = [] { return std::chrono::steady_clock::now() + 2s; };
  const std::string endless = std::string("\0\0\0\0\1\0\0\0", 8) + std::string(1 << 16, 'x');
  ProcessResult result = answered_by([&](const Socket& socket) {
    greeted(socket, "job");
    socket.send(endless, soon());
  });
  EXPECT_EQ(result.code, exit_code(ErrorKind::kComm));
  EXPECT_NE(result.text.find("a message of 4294967296 bytes, wanted at most 65536"), std::string::npos)
      << result.text;
  result = answered_by([&](const Socket& socket) {
    ProvenMessages messages = greeted(socket, "job");
    for (int i = 0; i < 2; ++i) socket.send(messages.packed(kWelcome), soon());
    socket.send(endless, soon());
  });
  EXPECT_EQ(result.code, exit_code(ErrorKind::kComm));
  EXPECT_NE(result.text.find("rank 0: a message of 4294967296 bytes, wanted at most "), std::string::npos)
      << result.text;
}

// The false rank 0 has the token, so it can prove what it sends.
TEST(Rendezvous, TakesNoMoreTextsThanThereAreRanks) {
  const ProcessResult result = answered_by([&](const Socket& socket) {
    ProvenMessages messages = greeted(socket, "job");
    const std::string many("\0\1\1\0\0\0\0\0", 8);  // 65,792 texts
    for (const std::string& text :
         {std::string(kWelcome), std::string(kWelcome), many + std::string(65'792, '\0')})
      socket.send(messages.packed(text), std::chrono::steady_clock::now() + 2s);
  });
  EXPECT_EQ(result.code, exit_code(ErrorKind::kComm));
  EXPECT_NE(result.text.find("rank 0: it sent what 65792 ranks said, wanted 2"), std::string::npos)
      << result.text;
}

// Rank 0's message may contain anything, but no control character of it may reach the terminal.
TEST(Rendezvous, ShowsNoControlCharacterOfRankZero) {
  const ProcessResult result = answered_by([&](const Socket& socket) {
    ProvenMessages messages = greeted(socket, "job");
    socket.send(messages.packed(encode_failure({ErrorKind::kUsage, "\x1b[2J" + std::string(50000, 'x')})),
                std::chrono::steady_clock::now() + 2s);
  });
  EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage));
  EXPECT_NE(result.text.find("to rank 1: \\x1b[2Jxxx"), std::string::npos) << result.text;
  EXPECT_LT(result.text.size(), 4500U);
}

TEST(Rendezvous, BoundsAnExchange) {
  const int port = free_port();
  const auto results = run_processes(2, [&](int rank) {
    const Rendezvous rendezvous = join_rendezvous(options_of(rank, 2, port));
    (void)rendezvous.exchange(std::string(rank == 1 ? 100'000 : 1, 'x'));
    return std::string();
  });
  EXPECT_EQ(results[0].code, exit_code(ErrorKind::kComm));
  EXPECT_NE(results[0].text.find("rank 1: a message of 100000 bytes, wanted at most 66048"),
            std::string::npos)
      << results[0].text;
}

// The ranks belong to another job of the same launcher, and there is no token.
TEST(Rendezvous, RefusesAnotherJob) {
  const int port = free_port();
  const auto of_job = [&](int rank, const char* job) {
    RendezvousOptions options = options_of(rank, 2, port);
    options.launch.token = "";
    options.launch.job = job;
    return options;
  };
  ForkedProcess first([&] { return met(of_job(0, "4711")); });
  ForkedProcess stray([&] { return met(of_job(1, "4712")); });
  const ProcessResult result = stray.wait();
  EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage));
  EXPECT_NE(result.text.find("to rank 1: it belongs to another job of the launcher (TORCHELASTIC_RUN_ID or "
                             "SLURM_JOB_ID): \"4712\", rank 0 to \"4711\""),
            std::string::npos)
      << result.text;
  ForkedProcess second([&] { return met(of_job(1, "4711")); });
  EXPECT_EQ(second.wait().code, 0);
  EXPECT_EQ(first.wait().code, 0);
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
  for (const ProcessResult& result : results) {  // rank 0 tells the rank that has joined
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

// A rank that its launcher restarts may join again in its old place.
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

// The system lists listening sockets in hexadecimal, in the machine's byte order.
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
  EXPECT_EQ(listeners[0], "0100007F:" + wanted.str());  // listens on 127.0.0.1, not on 0.0.0.0
  ForkedProcess second([&] { return met(options_of(1, 2, port)); });
  EXPECT_EQ(second.wait().code, 0);
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_THROW(connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + 200ms),
               Error);  // fails, since the listening socket is closed
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
