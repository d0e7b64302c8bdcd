#include "libcore/launch/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kPause = milliseconds(50);  // between two attempts to connect
constexpr int kLook = 100;                 // milliseconds between two checks for a signal
constexpr auto kLongestTry = std::chrono::seconds(5);
constexpr int kWaiting = 4096;  // connections that the system queues until they are accepted

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

constexpr size_t kMaxHost = 255;  // bytes in a message

std::string shown(const std::string& host) {
  return printable(host, kMaxHost);
}

/// The host without the brackets that separate an IPv6 address from a port.
std::string bare(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

/// Looks up the host's addresses. Null, with getaddrinfo()'s error in `code`, if the host has none.
Addresses look_up(const std::string& host, int port, int& code) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  code = ::getaddrinfo(bare(host).c_str(), std::to_string(port).c_str(), &hints, &found);
  return {code == 0 ? found : nullptr, &::freeaddrinfo};
}

/// Warns on every rank, also on those that leave the log to rank 0: rank 0 may have no need to look up the
/// name, or may know it already.
void warn_of_wait(const std::string& host, int code) {
  const bool muted = mute_this_thread(false);
  warn("the host ", quote_name(host), " has no address yet (", ::gai_strerror(code),
       "); it is looked up again until the timeout");
  mute_this_thread(muted);
}

Addresses resolve(const std::string& host, int port, Deadline deadline) {
  for (bool first = true;; first = false) {
    int code = 0;
    if (Addresses found = look_up(host, port, code)) return found;
    if (steady_clock::now() + kPause >= deadline)
      fail(ErrorKind::kUsage, "the host ", quote_name(host), " has no address (", ::gai_strerror(code),
           "); give another MASTER_ADDR or --master-addr");
    if (first) warn_of_wait(host, code);
    stop_if_asked();
    std::this_thread::sleep_until(std::min(deadline, steady_clock::now() + kBetweenLookUps));
  }
}

std::string numeric(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

int milliseconds_left(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000'000));
}

bool wait_for(int descriptor, short event, Deadline deadline) {
  pollfd wanted{.fd = descriptor, .events = event, .revents = 0};
  for (;;) {
    const int left = milliseconds_left(deadline);
    const int ready = ::poll(&wanted, 1, std::min(left, kLook));
    if (ready > 0 || left <= 0 || (ready < 0 && errno != EINTR)) return ready > 0;
    stop_if_asked();
  }
}

Socket new_socket(const addrinfo& to) {
  return Socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void send_at_once(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Connects to one address. If there is no listener, the result is not open, and errno is set.
Socket try_connect(const addrinfo& to, Deadline deadline) {
  Socket socket = new_socket(to);
  if (!socket.open()) return socket;
  if (::connect(socket.descriptor(), to.ai_addr, to.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return {};
  if (!wait_for(socket.descriptor(), POLLOUT, std::min(deadline, steady_clock::now() + kLongestTry))) {
    errno = ETIMEDOUT;
    return {};
  }
  int error = 0;
  socklen_t bytes = sizeof error;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  errno = error;
  return error == 0 ? std::move(socket) : Socket();
}

/// Whether a socket is connected to itself: TCP does that when a process connects to a local port on which
/// nothing listens yet.
bool with_itself(const Socket& socket) {
  sockaddr_storage mine{}, peer{};
  socklen_t bytes = sizeof mine, peer_bytes = sizeof peer;
  return ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&mine), &bytes) == 0 &&
         ::getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0 &&
         bytes == peer_bytes && std::memcmp(&mine, &peer, bytes) == 0;
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Interfaces interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail(ErrorKind::kIo, "network interfaces: ", std::strerror(errno));
  return {list, &::freeifaddrs};
}

/// The interface's IPv4 or IPv6 address as text; empty if it has neither.
std::string address_of(const ifaddrs& interface) {
  if (!interface.ifa_addr) return {};
  if (interface.ifa_addr->sa_family == AF_INET) return numeric(interface.ifa_addr, sizeof(sockaddr_in));
  if (interface.ifa_addr->sa_family == AF_INET6) return numeric(interface.ifa_addr, sizeof(sockaddr_in6));
  return {};
}

}  // namespace

Socket::~Socket() {
  close();
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

std::string Socket::local_address() const {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &bytes);
  return numeric(reinterpret_cast<const sockaddr*>(&address), bytes);
}

std::string Socket::peer_address() const {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  ::getpeername(descriptor_, reinterpret_cast<sockaddr*>(&address), &bytes);
  return numeric(reinterpret_cast<const sockaddr*>(&address), bytes);
}

int Socket::local_port() const {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

void Socket::send(std::string_view bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(descriptor_, POLLOUT, deadline))
        fail(ErrorKind::kComm, peer_address(), " accepted no bytes before the deadline");
    } else if (errno != EINTR) {
      fail(ErrorKind::kComm, peer_address(), " closed the connection (", std::strerror(errno), ")");
    }
  }
}

std::string Socket::receive(size_t bytes, Deadline deadline) const {
  std::string out;
  while (out.size() < bytes) {
    if (!wait_for(descriptor_, POLLIN, deadline))
      fail(ErrorKind::kComm, peer_address(), " sent ", out.size(), " of ", bytes,
           " bytes before the deadline");
    const auto some = receive_some(bytes - out.size());
    if (!some) fail(ErrorKind::kComm, peer_address(), " closed the connection");
    out += *some;
  }
  return out;
}

std::optional<std::string> Socket::receive_some(size_t bytes) const {
  std::string out(std::min(bytes, size_t{1} << 16), '\0');
  const ssize_t got = ::recv(descriptor_, out.data(), out.size(), 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
  out.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return out;
}

Socket Socket::accept() const {
  Socket peer(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (peer.open()) send_at_once(peer.descriptor());
  return peer;
}

Socket listen_on(const std::string& host, int port, Deadline deadline) {
  const Addresses addresses = resolve(host, port, deadline);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
    Socket socket = new_socket(*at);
    const int on = 1;
    if (socket.open()) ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket.open() && ::bind(socket.descriptor(), at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(socket.descriptor(), kWaiting) == 0)
      return socket;
    error = errno;
  }
  if (error == EADDRINUSE)
    fail(ErrorKind::kComm, "port ", port, " of ", shown(host),
         " is taken by another program; give another MASTER_PORT or --master-port");
  fail(ErrorKind::kUsage, "rank 0 cannot listen on ", shown(host), ':', port, " (", std::strerror(error),
       "); MASTER_ADDR has to name the machine that rank 0 runs on");
}

Socket connect_to(const std::string& host, int port, Deadline deadline) {
  Addresses addresses = resolve(host, port, deadline);
  for (Deadline looked_up = steady_clock::now();;) {
    for (const addrinfo* at = addresses.get(); at; at = at->ai_next) {
      Socket socket = try_connect(*at, deadline);
      if (!socket.open() || with_itself(socket)) continue;
      send_at_once(socket.descriptor());
      return socket;
    }
    const int error = errno;
    if (steady_clock::now() + kPause >= deadline)
      fail(ErrorKind::kComm, "no process listens on ", shown(host), ':', port, " (", std::strerror(error),
           ")");
    stop_if_asked();
    std::this_thread::sleep_for(kPause);
    if (steady_clock::now() - looked_up < kBetweenLookUps) continue;
    int code = 0;  // looks up again: the machine may have restarted at another address
    if (Addresses now = look_up(host, port, code)) addresses = std::move(now);
    looked_up = steady_clock::now();
  }
}

std::string address_of_interface(const std::string& name) {
  const Interfaces all = interfaces();
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* at = all.get(); at; at = at->ifa_next)
      if (at->ifa_name == name && at->ifa_addr && at->ifa_addr->sa_family == family) return address_of(*at);
  std::vector<std::string> names;
  for (const ifaddrs* at = all.get(); at; at = at->ifa_next)
    if (std::find(names.begin(), names.end(), at->ifa_name) == names.end()) names.emplace_back(at->ifa_name);
  fail(ErrorKind::kUsage, "GLOO_SOCKET_IFNAME=", quote_name(name),
       " in the environment: no network interface with an address has that name; there are ",
       join(names, ", "));
}

std::vector<std::string> outward_addresses() {
  std::vector<std::string> found;
  const Interfaces all = interfaces();
  for (const ifaddrs* at = all.get(); at; at = at->ifa_next) {
    if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (const std::string address = address_of(*at); !address.empty())
      found.push_back(concat(at->ifa_name, ' ', address));
  }
  return found;
}

ThisMachine::ThisMachine() {
  const Interfaces all = interfaces();
  for (const ifaddrs* at = all.get(); at; at = at->ifa_next)
    if (std::string address = address_of(*at); !address.empty()) addresses_.insert(std::move(address));
}

std::optional<bool> ThisMachine::is(const std::string& host) const {
  int code = 0;
  const Addresses found = look_up(host, 0, code);
  if (!found) return std::nullopt;
  for (const addrinfo* at = found.get(); at; at = at->ai_next)
    if (addresses_.contains(numeric(at->ai_addr, at->ai_addrlen))) return true;
  return false;
}

int free_port(const std::string& host) {
  return listen_on(host, 0).local_port();
}

}  // namespace megalith
