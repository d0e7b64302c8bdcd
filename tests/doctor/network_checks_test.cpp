#include "libcore/doctor/network_checks.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/launch/socket.h"

namespace megalith {
namespace {
using State = Finding::State;

Finding of(const Findings& findings, const std::string& check) {
  const auto at =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.check == check; });
  return at == findings.end() ? Finding{} : *at;
}

TEST(NetworkChecks, KnowAFreePortFromATakenOne) {
  const int port = free_port("127.0.0.1");
  EXPECT_EQ(of(check_network(port), "port"),
            (Finding{"port", State::kGood, std::to_string(port) + " is free", ""}));
  const Socket listener = listen_on("127.0.0.1", port);
  const Finding taken = of(check_network(port), "port");
  EXPECT_EQ(taken.state, State::kWarning);
  EXPECT_NE(taken.text.find(std::to_string(port)), std::string::npos) << taken.text;
  EXPECT_EQ(taken.text.find("--master-port"), std::string::npos) << "advice twice: " << taken.text;
  EXPECT_TRUE(taken.remedy.starts_with("give ranks another one, such as --master-port ")) << taken.remedy;
}

TEST(NetworkChecks, NameInterfacesAndLoopback) {
  const Findings found = check_network(free_port("127.0.0.1"));
  EXPECT_FALSE(of(found, "interfaces").text.empty());
  EXPECT_EQ(of(found, "loopback").text, "127.0.0.1");
}

}  // namespace
}  // namespace megalith
