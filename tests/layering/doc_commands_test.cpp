// Every command of README.md and of docs/ is run by a test, or tests/DOC_COMMANDS says why none does.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/files.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

using test::kRoot;
using test::table_lines;
using test::tests_by_name;
using test::text_of;

/// A line of tests/DOC_COMMANDS.
struct Runner {
  std::string page;   // "convert.md"
  std::string test;   // "Suite.Name", or "none (REASON)"
  std::string start;  // of the commands that it speaks of; empty: all of the page
};

std::vector<Runner> read_table() {
  static const std::regex kLine(R"(^(\S+\.md): ([A-Za-z]+\.[A-Za-z]+|none \([^)]+\))(: (.+))?$)");
  std::vector<Runner> runners;
  for (const std::string& line : table_lines("tests/DOC_COMMANDS")) {
    std::smatch match;
    if (std::regex_match(line, match, kLine))
      runners.push_back({match[1], match[2], match[4]});
    else
      ADD_FAILURE() << "tests/DOC_COMMANDS: \"" << line << "\" is not PAGE: TEST or none (REASON)[: START]";
  }
  return runners;
}

/// "README.md" and the pages below docs/, by their paths from there; not the generated one, whose blocks are
/// the programs' synopses.
std::vector<std::string> pages() {
  std::vector<std::string> found = {"README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md" && entry.path().filename() != "options.md")
      found.push_back(entry.path().lexically_relative(kRoot / "docs").string());
  return found;
}

TEST(DocCommands, EachIsRunByATestOrHasAReason) {
  const std::vector<Runner> runners = read_table();
  std::set<size_t> used;
  for (const std::string& page : pages())
    for (const std::string& command : test::doc_commands(page)) {
      bool found = false;
      for (size_t i = 0; i < runners.size(); ++i)
        if (runners[i].page == page && command.starts_with(runners[i].start)) {
          found = true;
          used.insert(i);
        }
      EXPECT_TRUE(found) << page << ": no line of tests/DOC_COMMANDS speaks of: " << command;
    }
  for (size_t i = 0; i < runners.size(); ++i)
    EXPECT_TRUE(used.contains(i)) << "tests/DOC_COMMANDS: " << runners[i].page << " has no command "
                                  << runners[i].start;
}

// A test that has the page's name in its file reads the commands there, so that they cannot drift apart.
TEST(DocCommands, TheNamedTestsReadThePage) {
  const std::map<std::string, std::string> tests = tests_by_name();
  for (const Runner& runner : read_table()) {
    if (runner.test.starts_with("none")) continue;
    const auto test = tests.find(runner.test);
    ASSERT_NE(test, tests.end()) << "tests/DOC_COMMANDS: there is no test " << runner.test;
    EXPECT_NE(text_of(test->second).find(runner.page + '"'), std::string::npos)
        << runner.test << ": its file does not read " << runner.page;
  }
}

// Else a command could stand where no test looks.
TEST(DocCommands, StandInBlocksThatSaySo) {
  static const std::set<std::string> kOthers = {"json", "text", "yaml", "python"};
  for (const std::string& page : pages()) {
    std::istringstream text(text_of(page == "README.md" ? page : "docs/" + page));
    bool inside = false, shell = false;
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (line.starts_with("```")) {
        inside = !inside;
        shell = line == "```sh";
        EXPECT_TRUE(!inside || shell || kOthers.contains(line.substr(3)))
            << page << ':' << number << ": a block is sh, json, text, yaml or python";
      } else if (inside && !shell) {
        EXPECT_FALSE(line.starts_with("megalith") || line.starts_with("$ "))
            << page << ':' << number << ": a command in a block that is not sh: " << line;
      }
    }
  }
}

}  // namespace
}  // namespace megalith
