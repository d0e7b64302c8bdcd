#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

using Deadline = std::chrono::steady_clock::time_point;

/// A TCP socket over IPv4 or IPv6, closed with the object. Calls wait until their deadline; kComm says what
/// did not come, and from whom.
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
  std::string receive(size_t bytes, Deadline) const;  // exactly so many
  /// What is there now, at most `bytes`; nothing: the peer has closed. Waits for none: empty when there is
  /// none.
  std::optional<std::string> receive_some(size_t bytes) const;
  Socket accept() const;  // not open when nobody waits

 private:
  void close();
  int descriptor_ = -1;
};

/// A socket that listens on the interface of `host` alone; port 0: any. kUsage when `host` names no address
/// of this machine, kComm when the port is taken.
Socket listen_on(const std::string& host, int port);

/// Connects, again and again until the deadline, because the listener may start later; kUsage when `host`
/// names nothing at all.
Socket connect_to(const std::string& host, int port, Deadline);

/// The first address of a network interface ("eth0"); kUsage when there is none of that name.
std::string address_of_interface(const std::string& name);

/// Whether `host` names this machine: one of its interfaces has an address of it.
bool is_this_machine(const std::string& host);

}  // namespace megalith
