#include "libcore/launch/torch_store.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "libcore/base/error.h"
#include "libcore/launch/rendezvous.h"
#include "tests/support/processes.h"

namespace megalith::test {
namespace {

using namespace std::chrono_literals;

Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// A server with the part of torch's store that workers use at start, for a few clients. tools/peers tests
/// with torch's own store.
class StoreServer {
 public:
  explicit StoreServer(int clients) : listener_(listen_on("127.0.0.1", 0)) {
    for (int i = 0; i < clients; ++i) threads_.emplace_back([this] { serve(accept()); });
  }
  ~StoreServer() {
    for (std::thread& thread : threads_) thread.join();
  }
  int port() const { return listener_.local_port(); }
  std::string value(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return values_[key];
  }

 private:
  Socket accept() {
    for (;;) {
      pollfd wanted{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0};
      ::poll(&wanted, 1, 10);
      if (Socket socket = listener_.accept(); socket.open()) return socket;
    }
  }
  template <class T>
  static T number(const Socket& socket) {
    T value;
    const std::string bytes = socket.receive(sizeof value, in(20s));
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  static std::string text(const Socket& socket) {
    const auto bytes = number<uint64_t>(socket);
    return socket.receive(bytes, in(20s));
  }
  void serve(const Socket& socket) {
    try {
      ASSERT_EQ(number<uint8_t>(socket), 0);  // VALIDATE
      ASSERT_EQ(number<uint32_t>(socket), 0x3C85F7CEU);
      for (;;) answer(socket, number<uint8_t>(socket));
    } catch (const Error&) {  // the client has gone
    }
  }
  void answer(const Socket& socket, uint8_t query) {
    if (query == 1) {  // SET
      const std::string key = text(socket), value = text(socket);
      const std::lock_guard lock(mutex_);
      values_[key] = value;
    } else if (query == 6) {  // WAIT
      ASSERT_EQ(number<uint64_t>(socket), 1U);
      const std::string key = text(socket);
      while (value(key).empty()) std::this_thread::sleep_for(5ms);
      socket.send(std::string(1, '\0'), in(1s));
    } else {
      ASSERT_EQ(query, 3);  // GET
      const std::string found = value(text(socket));
      const uint64_t bytes = found.size();
      socket.send({reinterpret_cast<const char*>(&bytes), sizeof bytes}, in(1s));
      socket.send(found, in(1s));
    }
  }

  Socket listener_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::vector<std::thread> threads_;
};

TEST(TorchStore, SetsAndWaitsForKeys) {
  StoreServer server(2);
  TorchStore writer("127.0.0.1", server.port(), in(10s));
  TorchStore reader("127.0.0.1", server.port(), in(10s));
  std::thread later([&] {
    std::this_thread::sleep_for(100ms);
    writer.set("a/b", std::string("x\0y", 3));
  });
  EXPECT_EQ(reader.get("a/b"), std::string("x\0y", 3));
  later.join();
  EXPECT_EQ(server.value("/a/b"), std::string("x\0y", 3));  // torch's clients put a slash before each key
}

TEST(TorchStore, EndsAtItsDeadlineWithTheKey) {
  const Socket mute = listen_on("127.0.0.1", 0);
  try {
    TorchStore("127.0.0.1", mute.local_port(), in(200ms)).get("key");
    ADD_FAILURE() << "got a value from nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kComm);
    EXPECT_NE(std::string(error.what()).find("key \"key\""), std::string::npos) << error.what();
  }
}

// torchrun's agent uses MASTER_PORT, so rank 0 listens on another port and writes its address to the store,
// again after each restart.
TEST(TorchStore, CarriesTheAddressOfRankZero) {
  StoreServer server(3);
  const auto results = [&] {
    std::vector<ForkedProcess> processes;
    for (int rank = 0; rank < 3; ++rank)
      processes.emplace_back([&server, rank] {
        const Rendezvous rendezvous = join_rendezvous({.launch = {.rank = rank,
                                                                  .world = 3,
                                                                  .address = "127.0.0.1",
                                                                  .port = server.port(),
                                                                  .agent_store = true,
                                                                  .attempt = "4"},
                                                       .timeout = 10s});
        return std::to_string(rendezvous.exchange("x").size());
      });
    std::vector<ProcessResult> all;
    for (ForkedProcess& process : processes) all.push_back(process.wait());
    return all;
  }();
  for (const ProcessResult& result : results) EXPECT_EQ(result.text, "3");
  EXPECT_TRUE(server.value("/megalith/4/rank0").starts_with(R"({"host": "127.0.0.1", "port": )"))
      << server.value("/megalith/4/rank0");
}

}  // namespace
}  // namespace megalith::test
