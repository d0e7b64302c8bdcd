#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace megalith {

using Deadline = std::chrono::steady_clock::time_point;

constexpr auto kBetweenLookUps = std::chrono::seconds(1);  // of a host's name that has no address yet

/// A TCP socket over IPv4 or IPv6, closed with the object. Calls wait until their deadline and then throw
/// kComm, which says what did not arrive, and from whom.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  std::string local_address() const;  // "192.0.2.1", the interface that routes to the peer
  std::string peer_address() const;
  int local_port() const;

  void send(std::string_view bytes, Deadline) const;
  std::string receive(size_t bytes, Deadline) const;  // exactly `bytes` bytes
  /// What has arrived, at most `bytes`, without waiting: an empty string if nothing has, nullopt if the peer
  /// has closed the connection.
  std::optional<std::string> receive_some(size_t bytes) const;
  Socket accept() const;  // if no connection waits or none can be opened, the result is not open; see errno

 private:
  void close();
  int descriptor_ = -1;
};

// `host` is a name, an IPv4 or an IPv6 address, which may be in brackets: "[::1]". A name that has no address
// is looked up again until the deadline, since some systems (Kubernetes) give a machine its name late; a
// warning says so. kUsage if it has none at the deadline.

/// A socket that listens only on the interface of `host`; port 0: any port. kUsage if `host` is not an
/// address of this machine, kComm if the port is taken.
Socket listen_on(const std::string& host, int port, Deadline = {});

/// Connects, and retries until the deadline: the listener may start later.
Socket connect_to(const std::string& host, int port, Deadline);

/// The first address of a network interface ("eth0"); kUsage if there is none of that name.
std::string address_of_interface(const std::string& name);

/// "eth0 192.0.2.1" for each address of an interface that is up, without the loopback. Throws kIo.
std::vector<std::string> outward_addresses();

/// The addresses of this machine's interfaces.
class ThisMachine {
 public:
  ThisMachine();  // throws kIo
  /// Whether `host` names this machine, which means that one of the machine's interfaces has an address of
  /// `host`. Nothing if `host` has no address.
  std::optional<bool> is(const std::string& host) const;

 private:
  std::unordered_set<std::string> addresses_;
};

/// A port of that host or address of this machine on which nobody listens at the moment.
int free_port(const std::string& host);

}  // namespace megalith
