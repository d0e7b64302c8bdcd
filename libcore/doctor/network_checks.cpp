#include "libcore/doctor/network_checks.h"

#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/launch/socket.h"

namespace megalith {
namespace {
using State = Finding::State;

constexpr char kLoopback[] = "127.0.0.1";

Finding check_interfaces() {
  const std::vector<std::string> found = outward_addresses();
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
    Finding found = finding_of("loopback", State::kBad, error.what());
    found.remedy = "ip link set lo up; ranks that are processes need it";
    return found;
  }
}

Finding check_port(int port) {
  try {
    listen_on(kLoopback, port);
    return {.check = "port", .state = State::kGood, .text = concat(port, " is free"), .remedy = {}};
  } catch (const Error& error) {
    Finding found = finding_of("port", State::kWarning, error.what());
    found.remedy = concat("give ranks another one, such as --master-port ", free_port(kLoopback));
    return found;
  }
}

}  // namespace

Findings check_network(int port) {
  Findings findings = {check_interfaces(), check_loopback()};
  if (findings.back().state == State::kGood) findings.push_back(check_port(port));
  return findings;
}

}  // namespace megalith
