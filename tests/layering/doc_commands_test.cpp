// Every command on a page must be run by a test, or tests/DOC_COMMANDS must say why none runs it.
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/json/json.h"
#include "tests/layering/tree.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {
using test::doc_pages;
using test::table_lines;
using test::tests_by_name;
using test::text_of;
using test::text_of_page;

/// A line of tests/DOC_COMMANDS.
struct Runner {
  std::string page;   // "convert.md"
  std::string test;   // "Suite.Name", or "none (REASON)"
  std::string start;  // the beginning of the commands that it covers; empty: all
};

std::vector<Runner> read_table() {
  static const test::Pattern kLine(R"(^(\S+\.md): ([A-Za-z]+\.[A-Za-z]+|none \([^)]+\))(: (.+))?$)");
  std::vector<Runner> runners;
  for (const std::string& line : table_lines("tests/DOC_COMMANDS")) {
    if (const auto match = kLine.whole(line); !match.empty())
      runners.push_back({match[1], match[2], match[4]});
    else
      ADD_FAILURE() << "tests/DOC_COMMANDS: \"" << line << "\" is not PAGE: TEST or none (REASON)[: START]";
  }
  return runners;
}

/// The text of a page outside its code blocks.
std::string prose_of(const std::string& page) {
  std::istringstream text(text_of_page(page));
  std::string prose;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    const bool fence = line.starts_with("```");
    if (!inside && !fence) prose += line + '\n';
    inside ^= fence;
  }
  return prose;
}

/// Our commands that a page quotes in backticks: a program or script with arguments. Quotes with "…" and
/// programs with a single option or subcommand (`megalith-data verify`) are left out, since they only mention
/// the program.
std::vector<std::string> spoken_commands(const std::string& page) {
  static const test::Pattern kSpan(R"(`([^`]+)`)"), kSpace(R"(\s+)");
  static const test::Pattern kCommand(
      R"((\w+=\S+ )*(python3? )?(megalith-[a-z-]+ \S+ \S|)"
      R"(((build|bench|tools)/\S+|bench_\w+|ctest|cmake|\./(demo|test)) \S).*)");
  std::vector<std::string> found;
  const std::string prose = prose_of(page);
  for (const test::Pattern::Match& at : kSpan.all_in(prose)) {
    const std::string span = test::replaced(at[1], kSpace, " ");
    if (kCommand.matches(span) && span.find("…") == span.npos) found.push_back(span);
  }
  return found;
}

TEST(DocCommands, EachIsRunByATestOrHasAReason) {
  const std::vector<Runner> runners = read_table();
  std::set<size_t> used;
  const auto look_for = [&](const std::string& page, const std::string& command, bool spoken) {
    bool found = false;
    for (size_t i = 0; i < runners.size(); ++i) {
      const Runner& runner = runners[i];
      // A test that runs all blocks of a page does not run commands in the text between them.
      if (runner.page != page || !command.starts_with(runner.start) || (spoken && runner.start.empty()))
        continue;
      found = true;
      used.insert(i);
    }
    EXPECT_TRUE(found) << page << ": no line of tests/DOC_COMMANDS speaks of: " << command;
  };
  for (const std::string& page : doc_pages()) {
    for (const std::string& command : test::doc_commands(page)) look_for(page, command, false);
    for (const std::string& command : spoken_commands(page)) look_for(page, command, true);
  }
  for (size_t i = 0; i < runners.size(); ++i)
    EXPECT_TRUE(used.contains(i)) << "tests/DOC_COMMANDS: " << runners[i].page << " has no command "
                                  << runners[i].start;
}

// A test must read its commands from the page, so that the two cannot drift apart. It does if its file
// contains the page's name.
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

// Shell commands must be in ```sh blocks, since the tests look at no others.
TEST(DocCommands, AreInBlocksThatSaySo) {
  static const std::set<std::string> kOthers = {"json", "text", "yaml", "python"};
  for (const std::string& page : doc_pages()) {
    std::istringstream text(text_of_page(page));
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

// Readers copy from JSON blocks, so each must hold one valid JSON document, or one per line.
TEST(DocBlocks, OfJsonAreJson) {
  int blocks = 0;
  for (const std::string& page : doc_pages()) {
    std::istringstream text(text_of_page(page));
    for (std::string line; std::getline(text, line);) {
      if (line != "```json") continue;
      ++blocks;
      std::string whole;
      std::vector<std::string> documents;
      for (; std::getline(text, line) && line != "```"; whole += line + '\n') documents.push_back(line);
      if (whole.starts_with("{\n")) documents = {whole};
      for (const std::string& document : documents)
        EXPECT_NO_THROW(Json::parse(document, page)) << page << ": " << document;
    }
  }
  EXPECT_GT(blocks, 1);
}

}  // namespace
}  // namespace megalith
