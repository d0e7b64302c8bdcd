#include "libcore/launch/socket.h"

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "tests/launch/late_name.h"
#include "tests/support/log_lines.h"

namespace megalith::test {

std::atomic<int> look_ups_until_it_is_there{0};

}  // namespace megalith::test

// The system's function, except that one name has no address at first and later is 127.0.0.1, as in
// Kubernetes.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  using Call = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto kSystem = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host != nullptr && std::string(host) == megalith::test::kSlowName) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return EAI_AGAIN;
  }
  if (host == nullptr || std::string(host) != megalith::test::kLateName)
    return kSystem(host, port, hints, found);
  if (megalith::test::look_ups_until_it_is_there-- > 0) return EAI_NONAME;
  return kSystem("127.0.0.1", port, hints, found);
}

namespace megalith::test {
namespace {

using namespace std::chrono_literals;

Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

ErrorKind kind_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::kInternal;  // returned if nothing is thrown; no call here throws kInternal
}

TEST(Socket, CarriesBytesBothWays) {
  const Socket listener = listen_on("127.0.0.1", 0);
  const Socket here = connect_to("127.0.0.1", listener.local_port(), in(1s));
  const Socket there = listener.accept();
  ASSERT_TRUE(there.open());
  EXPECT_FALSE(listener.accept().open());
  here.send("question", in(1s));
  EXPECT_EQ(there.receive(8, in(1s)), "question");
  there.send("answer", in(1s));
  EXPECT_EQ(here.receive(6, in(1s)), "answer");
  EXPECT_EQ(here.peer_address(), "127.0.0.1");
}

TEST(Socket, EndsAtItsDeadlineAndWhenThePeerGoes) {
  const Socket listener = listen_on("127.0.0.1", 0);
  const Socket here = connect_to("127.0.0.1", listener.local_port(), in(1s));
  Socket there = listener.accept();
  EXPECT_EQ(kind_of([&] { (void)here.receive(1, in(50ms)); }), ErrorKind::kComm);
  EXPECT_EQ(here.receive_some(8), "");
  there = {};
  EXPECT_EQ(kind_of([&] { (void)here.receive(1, in(1s)); }), ErrorKind::kComm);
  EXPECT_FALSE(here.receive_some(8));
}

TEST(Socket, SaysWhyItCannotListenOrConnect) {
  const Socket listener = listen_on("127.0.0.1", 0);
  EXPECT_EQ(kind_of([&] { (void)listen_on("127.0.0.1", listener.local_port()); }), ErrorKind::kComm);
  EXPECT_EQ(kind_of([&] { (void)listen_on("203.0.113.1", 0); }), ErrorKind::kUsage);  // no machine's address
  EXPECT_EQ(kind_of([&] { (void)listen_on("no.such.host.invalid", 0); }), ErrorKind::kUsage);
  const int port = listen_on("127.0.0.1", 0).local_port();  // the socket is closed again
  EXPECT_EQ(kind_of([&] { (void)connect_to("127.0.0.1", port, in(100ms)); }), ErrorKind::kComm);
}

TEST(Socket, KnowsThisMachine) {
  const ThisMachine machine;
  EXPECT_EQ(machine.is("127.0.0.1"), true);
  EXPECT_EQ(machine.is("[127.0.0.1]"), true);
  EXPECT_EQ(machine.is("203.0.113.1"), false);
  EXPECT_EQ(machine.is("no.such.host.invalid"), std::nullopt);
  EXPECT_EQ(address_of_interface("lo"), "127.0.0.1");
}

TEST(Socket, KnowsWhereOthersReachThisMachine) {
  const ThisMachine machine;
  for (const std::string& outward : outward_addresses()) {
    const size_t blank = outward.find(' ');
    ASSERT_NE(blank, std::string::npos) << outward;
    EXPECT_NE(outward.substr(0, blank), "lo");
    EXPECT_EQ(machine.is(outward.substr(blank + 1)), true) << outward;
  }
}

TEST(Socket, LooksANameUpAgainUntilItIsThere) {
  const Socket listener = listen_on("127.0.0.1", 0);
  look_ups_until_it_is_there = 2;
  EXPECT_TRUE(connect_to(kLateName, listener.local_port(), in(10s)).open());
  look_ups_until_it_is_there = 2;
  EXPECT_EQ(listen_on(kLateName, 0, in(10s)).local_address(), "127.0.0.1");
  look_ups_until_it_is_there = 1 << 20;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of([&] { (void)connect_to(kLateName, listener.local_port(), in(1500ms)); }),
            ErrorKind::kUsage);
  const auto waited = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(waited, 1400ms);
  EXPECT_LT(waited, 5s);
}

// Ranks above 0 log nothing, but each waits for itself.
TEST(Socket, SaysOnEveryRankThatItWaitsForAName) {
  const Socket listener = listen_on("127.0.0.1", 0);
  const Muted as_other_ranks;
  const LogLines log;
  look_ups_until_it_is_there = 3;
  EXPECT_TRUE(connect_to(kLateName, listener.local_port(), in(10s)).open());
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("warning: the host \"late.host.invalid\" has no address yet"),
            std::string::npos)
      << log.lines[0];
  megalith::log("muted again");
  EXPECT_EQ(log.lines.size(), 1U);
}

TEST(Socket, TakesAnAddressInBrackets) {
  EXPECT_EQ(listen_on("[127.0.0.1]", 0).local_address(), "127.0.0.1");
  const ThisMachine machine;
  if (!machine.is("::1").value_or(false)) GTEST_SKIP() << "no IPv6 here";
  const Socket listener = listen_on("[::1]", 0);
  EXPECT_EQ(listener.local_address(), "::1");
  EXPECT_TRUE(connect_to("[::1]", listener.local_port(), in(1s)).open());
  EXPECT_TRUE(connect_to("::1", listener.local_port(), in(1s)).open());
}

TEST(Socket, ShowsNoControlCharacterOfAHost) {
  try {
    (void)listen_on("a\x1b[2J" + std::string(100000, 'b'), 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("\"a\\x1b[2Jbbb"), std::string::npos) << what;
    EXPECT_LT(what.size(), 600U);
  }
}

}  // namespace
}  // namespace megalith::test
