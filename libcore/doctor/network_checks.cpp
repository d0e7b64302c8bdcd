#include "libcore/doctor/network_checks.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/launch/socket.h"

namespace megalith {
namespace {
using State = Finding::State;

constexpr char kLoopback[] = "127.0.0.1";

bool reaches_others(const ifaddrs& one) {
  if (one.ifa_addr == nullptr || (one.ifa_flags & IFF_UP) == 0 || (one.ifa_flags & IFF_LOOPBACK) != 0)
    return false;
  return one.ifa_addr->sa_family == AF_INET || one.ifa_addr->sa_family == AF_INET6;
}

/// "eth0 192.0.2.1" for each address of an interface other than the loopback.
std::vector<std::string> addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail(ErrorKind::kIo, "network interfaces: ", std::strerror(errno));
  std::vector<std::string> found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    char text[NI_MAXHOST] = {};
    const size_t size = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET
                            ? sizeof(sockaddr_in)
                            : sizeof(sockaddr_in6);
    if (reaches_others(*one) && ::getnameinfo(one->ifa_addr, static_cast<socklen_t>(size), text, sizeof text,
                                              nullptr, 0, NI_NUMERICHOST) == 0)
      found.push_back(concat(one->ifa_name, ' ', text));
  }
  ::freeifaddrs(list);
  return found;
}

Finding check_interfaces() {
  const std::vector<std::string> found = addresses();
  return {
      .check = "interfaces",
      .state = State::kGood,
      .text = found.empty() ? "the loopback alone; other machines do not reach this one" : join(found, ", "),
      .remedy = {}};
}

Finding check_loopback() {
  try {
    listen_on(kLoopback, 0);
    return {.check = "loopback", .state = State::kGood, .text = kLoopback, .remedy = {}};
  } catch (const Error& error) {
    return {.check = "loopback",
            .state = State::kBad,
            .text = error.what(),
            .remedy = "ip link set lo up; ranks that are processes need it"};
  }
}

Finding check_port(int port) {
  try {
    listen_on(kLoopback, port);
    return {.check = "port", .state = State::kGood, .text = concat(port, " is free"), .remedy = {}};
  } catch (const Error& error) {
    return {.check = "port",
            .state = State::kWarning,
            .text = error.what(),
            .remedy = concat("give ranks another one, such as --master-port ", free_port(kLoopback))};
  }
}

}  // namespace

Findings check_network(int port) {
  Findings findings = {check_interfaces(), check_loopback()};
  if (findings.back().state == State::kGood) findings.push_back(check_port(port));
  return findings;
}

}  // namespace megalith
