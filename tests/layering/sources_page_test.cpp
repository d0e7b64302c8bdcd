// The table of docs/sources.md must have a row for each of the 38 commands, and the tests that it and the
// table of published files name must exist.
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

constexpr const char* kPage = "docs/sources.md";
constexpr int kItems = 38;  // the number of commands in the five sources (docs/sources.md)

/// The cells of a line of a table, without the blanks around them. The first is what precedes the first bar.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (const std::string& cell : split(line, '|')) cells.emplace_back(trim(cell));
  return cells;
}

/// The rows of the table of commands.
std::vector<std::vector<std::string>> rows() {
  std::vector<std::vector<std::string>> found;
  std::istringstream page(test::text_of(kPage));
  for (std::string line; std::getline(page, line);) {
    if (test::Pattern("^\\| [0-9]+ \\|").is_in(line)) found.push_back(cells_of(line));
  }
  return found;
}

/// The rows of the table of published files: the file, its fate, and the tests.
std::vector<std::vector<std::string>> file_rows() {
  std::vector<std::vector<std::string>> found;
  std::istringstream page(test::text_of(kPage));
  bool within = false;
  for (std::string line; std::getline(page, line);) {
    within = line.starts_with("|") && (within || line.starts_with("| file |"));
    if (within && !line.starts_with("| file |") && !line.starts_with("|---")) found.push_back(cells_of(line));
  }
  return found;
}

/// The texts between backquotes.
std::vector<std::string> quoted(const std::string& cell) {
  static const test::Pattern kQuoted("`([^`]+)`");
  std::vector<std::string> found;
  for (const test::Pattern::Match& at : kQuoted.all_in(cell)) found.push_back(at[1]);
  return found;
}

TEST(SourcesPage, HasARowForEachCommand) {
  int item = 0;
  for (const auto& cells : rows()) {
    ASSERT_EQ(cells.size(), 6u) << cells[1];
    EXPECT_EQ(cells[1], std::to_string(++item));
  }
  EXPECT_EQ(item, kItems);
}

TEST(SourcesPage, NamesTestsThatThereAre) {
  const std::map<std::string, std::string> there = test::tests_by_name();
  ASSERT_TRUE(there.contains("SourcesPage.NamesTestsThatThereAre"));
  for (const auto& cells : rows()) {
    const std::vector<std::string> names = quoted(cells[4]);
    EXPECT_FALSE(names.empty()) << "item " << cells[1] << " has no test";
    for (const std::string& name : names)
      EXPECT_TRUE(there.contains(name)) << "item " << cells[1] << ": there is no test " << name;
  }
}

TEST(SourcesPage, NamesTestsOfEachPublishedFile) {
  const std::map<std::string, std::string> there = test::tests_by_name();
  int of_mindformers = 0;
  for (const auto& cells : file_rows()) {
    ASSERT_EQ(cells.size(), 5u) << cells[1];
    const std::vector<std::string> names = quoted(cells[3]);
    EXPECT_FALSE(names.empty()) << cells[1] << " has no test";
    for (const std::string& name : names) {
      EXPECT_TRUE(there.contains(name)) << cells[1] << ": there is no test " << name;
      of_mindformers += name.starts_with("MindFormersFiles.") ? 1 : 0;
    }
  }
  EXPECT_EQ(of_mindformers, 17);  // the files for GPT-2 and LLaMA that docs/from-mindformers.md lists
}

// A row with "with changes" or "broken there" needs a note with details.
TEST(SourcesPage, ExplainsEachStateThatIsNotAsPrinted) {
  const std::string page = test::text_of(kPage);
  for (const auto& cells : rows()) {
    if (const auto note = test::Pattern("(⁰|¹|²|³|⁴|⁵|⁶|⁷|⁸|⁹)+$").first_in(cells[3]); !note.empty()) {
      EXPECT_NE(page.find(concat("\n- ", note[0], " ")), std::string::npos)
          << "item " << cells[1] << ": there is no note " << note[0];
    } else {
      EXPECT_TRUE(cells[3] == "as printed" || cells[3] == "refused")
          << "item " << cells[1] << ": " << cells[3];
    }
  }
}

}  // namespace
}  // namespace megalith
