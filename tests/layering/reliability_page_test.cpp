// docs/reliability.md names the tests of each promise. All of these tests must exist.
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>

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

/// The numbers that `pattern` captures in a file of the repository.
std::vector<std::string> codes_in(const std::string& file, const std::regex& pattern) {
  const std::string text = test::text_of(file);
  std::vector<std::string> codes;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    codes.push_back((*at)[1]);
  return codes;
}

TEST(ReliabilityPage, TellsWhatToDoAfterEveryExitCode) {
  std::vector<std::string> codes = codes_in("libcore/base/error.h", std::regex("\n  k[A-Z]\\w* = (\\d+),"));
  EXPECT_EQ(codes.size(), 8U);
  const std::vector<std::string> between_ranks =
      codes_in("libcore/launch/server_ranks.h", std::regex("constexpr int kStoppedRank = (\\d+);"));
  EXPECT_EQ(between_ranks.size(), 1U);
  codes.insert(codes.end(), between_ranks.begin(), between_ranks.end());
  codes.insert(codes.end(), {"0", "128 \\+ \\*n\\*"});
  const std::string page = test::text_of("docs/reliability.md");
  const size_t from = page.find("\n## Exit codes\n");
  ASSERT_NE(from, std::string::npos);
  const std::string section = page.substr(from, page.find("\n## ", from + 1) - from);
  for (const std::string& code : codes)
    EXPECT_TRUE(std::regex_search(section, std::regex("\n\\| " + code + " \\| [^|]+\\. \\| [^|]+\\. \\|\n")))
        << code << " has no row that says what it means and what to do";
}

}  // namespace
}  // namespace megalith
