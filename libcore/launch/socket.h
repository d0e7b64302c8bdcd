#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

using Deadline = std::chrono::steady_clock::time_point;

/// A TCP socket over IPv4 or IPv6, closed with the object. Calls wait until their deadline; kComm says what
/// did not arrive, and from whom.
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
  std::string receive(size_t bytes, Deadline) const;  // exactly that many
  /// What has arrived, at most `bytes`; empty if nothing has; nothing if the peer has closed. Does not wait.
  std::optional<std::string> receive_some(size_t bytes) const;
  Socket accept() const;  // not open if no connection is waiting

 private:
  void close();
  int descriptor_ = -1;
};

/// A socket that listens only on the interface of `host`; port 0: any port. kUsage if `host` is not an
/// address of this machine, kComm if the port is taken.
Socket listen_on(const std::string& host, int port);

/// Connects, and retries until the deadline: the listener may start later. kUsage if `host` cannot be
/// resolved.
Socket connect_to(const std::string& host, int port, Deadline);

/// The first address of a network interface ("eth0"); kUsage if there is none of that name.
std::string address_of_interface(const std::string& name);

/// Whether `host` names this machine: one of its interfaces has an address of it.
bool is_this_machine(const std::string& host);

}  // namespace megalith
