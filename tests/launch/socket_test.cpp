#include "libcore/launch/socket.h"

#include <chrono>
#include <functional>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

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
  return ErrorKind::kInternal;  // which none of these is
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
  EXPECT_EQ(kind_of([&] { (void)listen_on("203.0.113.1", 0); }), ErrorKind::kUsage);  // of documentation
  EXPECT_EQ(kind_of([&] { (void)listen_on("no.such.host.invalid", 0); }), ErrorKind::kUsage);
  const int port = listen_on("127.0.0.1", 0).local_port();  // closed again
  EXPECT_EQ(kind_of([&] { (void)connect_to("127.0.0.1", port, in(100ms)); }), ErrorKind::kComm);
}

TEST(Socket, KnowsThisMachine) {
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_FALSE(is_this_machine("203.0.113.1"));
  EXPECT_EQ(address_of_interface("lo"), "127.0.0.1");
}

}  // namespace
}  // namespace megalith::test
