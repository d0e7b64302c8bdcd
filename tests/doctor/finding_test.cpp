#include "libcore/doctor/finding.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {
using State = Finding::State;

TEST(Finding, TakesTheRemedyFromTheEndOfAMessage) {
  const Finding found = finding_of("disk", State::kBad, "a; b is full; remove files");
  EXPECT_EQ(found, (Finding{"disk", State::kBad, "a; b is full", "remove files"}));
  EXPECT_EQ(finding_of("disk", State::kBad, "full"), (Finding{"disk", State::kBad, "full", ""}));
}

TEST(Finding, IsReadFromWhatWasWritten) {
  const Findings all = {{"memory", State::kWarning, "64 MiB\nleft", "end \"programs\""},
                        {"port", State::kGood, "", ""}};
  EXPECT_EQ(findings_of(Json::parse(to_json(all).dump(), "test")), all);
  EXPECT_THROW(findings_of(Json::parse(R"([{"check":"a","state":"fine","found":"","remedy":""}])", "test")),
               Error);
}

}  // namespace
}  // namespace megalith
