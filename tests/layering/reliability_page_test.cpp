// docs/reliability.md names the tests of each promise. All of these tests must exist.
#include <algorithm>
#include <map>
#include <regex>
#include <string>

#include <fnmatch.h>
#include <gtest/gtest.h>

#include "tests/layering/tree.h"

namespace megalith {
namespace {

TEST(ReliabilityPage, NamesTestsThatThereAre) {
  const std::map<std::string, std::string> there = test::tests_by_name();
  const std::string page = test::text_of("docs/reliability.md");
  // Matches `Suite.Name`, which may follow an instantiation; "*" or "…" stand for omitted parts.
  static const std::regex kName("`([A-Za-z]+/)?([A-Z*][A-Za-z0-9*]*(\\.[A-Z*][A-Za-z0-9*]*|\\*))(…)?`");
  int names = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), kName), end; at != end; ++at, ++names) {
    const std::string pattern = (*at)[2].str() + ((*at)[4].matched ? "*" : "");
    EXPECT_TRUE(
        std::any_of(there.begin(), there.end(),
                    [&](const auto& test) { return ::fnmatch(pattern.c_str(), test.first.c_str(), 0) == 0; }))
        << "there is no test " << at->str();
  }
  EXPECT_GE(names, 60);
}

}  // namespace
}  // namespace megalith
