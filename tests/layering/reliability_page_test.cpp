// docs/reliability.md names the tests of each promise. All of these tests must exist.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fnmatch.h>
#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

TEST(ReliabilityPage, NamesTestsThatThereAre) {
  const std::map<std::string, std::string> there = test::tests_by_name();
  // Matches `ROOM_test`, or `Suite.Name`, which may follow an instantiation; "*" or "…" stand for omitted
  // parts.
  static const test::Pattern kName(
      "`([a-z]+)_test`|`([A-Za-z]+/)?([A-Z*][A-Za-z0-9*]*(\\.[A-Z*][A-Za-z0-9*]*|\\*))(…)?`");
  int names = 0;
  for (const std::string& line : split(test::text_of("docs/reliability.md"), '\n')) {
    std::string folder = "tests/";  // of the binary that the line names before the test
    for (const test::Pattern::Match& at : kName.all_in(line)) {
      if (!at[1].empty()) {
        folder = "tests/" + at[1] + "/";
        continue;
      }
      ++names;
      const std::string pattern = at[3] + (at[5].empty() ? "" : "*");
      EXPECT_TRUE(std::any_of(there.begin(), there.end(),
                              [&](const auto& test) {
                                return test.second.starts_with(folder) &&
                                       ::fnmatch(pattern.c_str(), test.first.c_str(), 0) == 0;
                              }))
          << "there is no test " << at[0] << " in " << folder;
    }
  }
  EXPECT_GE(names, 60);
}

/// The numbers that `pattern` captures in a file of the repository.
std::vector<std::string> codes_in(const std::string& file, const test::Pattern& pattern) {
  const std::string text = test::text_of(file);
  std::vector<std::string> codes;
  for (const test::Pattern::Match& at : pattern.all_in(text)) codes.push_back(at[1]);
  return codes;
}

TEST(ReliabilityPage, TellsWhatToDoAfterEveryExitCode) {
  std::vector<std::string> codes = codes_in("libcore/base/error.h", "\n  k[A-Z]\\w* = (\\d+),");
  EXPECT_EQ(codes.size(), 8U);
  const std::vector<std::string> between_ranks =
      codes_in("libcore/launch/server_ranks.h", "constexpr int kStoppedRank = (\\d+);");
  EXPECT_EQ(between_ranks.size(), 1U);
  codes.insert(codes.end(), between_ranks.begin(), between_ranks.end());
  codes.insert(codes.end(), {"0", "128 \\+ \\*n\\*"});
  const std::string page = test::text_of("docs/reliability.md");
  const size_t from = page.find("\n## Exit codes\n");
  ASSERT_NE(from, std::string::npos);
  const std::string section = page.substr(from, page.find("\n## ", from + 1) - from);
  for (const std::string& code : codes)
    EXPECT_TRUE(test::Pattern("\n\\| " + code + " \\| [^|]+\\. \\| [^|]+\\. \\|\n").is_in(section))
        << code << " has no row that says what it means and what to do";
}

}  // namespace
}  // namespace megalith
