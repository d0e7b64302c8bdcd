// Pages are read in terminals and compared line by line, so their lines and paragraphs must be short.
#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

/// The number of characters in a line of UTF-8: of bytes that do not continue a character.
size_t columns(const std::string& line) {
  return static_cast<size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Whether a line cannot be broken: a table row, or a single word (an address) after its indentation or list
/// marker.
bool cannot_be_broken(const std::string& line) {
  const size_t word = line.find_first_not_of(" -");
  return word == line.npos || line[word] == '|' || line.find(' ', word) == line.npos;
}

/// A paragraph or list item: the number of its first line, and how many words it has.
struct Paragraph {
  int line = 0;
  int words = 0;
};

/// The paragraphs of a page, without code blocks, tables and headings.
std::vector<Paragraph> paragraphs(const std::string& page) {
  static const test::Pattern kItem(R"(\s*([-*+]|[0-9]+\.) .*)"), kNoProse(R"(\s*|\s*[|#].*)");
  std::vector<Paragraph> found;
  std::istringstream text(test::text_of_page(page));
  bool code = false, open = false;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const bool fence = line.starts_with("```");
    code ^= fence;
    const bool prose = !code && !fence && !kNoProse.matches(line);
    if (prose && (!open || kItem.matches(line))) found.push_back({number, 0});
    open = prose;
    std::istringstream words(line);
    if (prose)
      found.back().words += static_cast<int>(std::distance(std::istream_iterator<std::string>(words), {}));
  }
  return found;
}

// Longer commands must be continued after a backslash. Longer log lines must be wrapped, and the page must
// say so.
TEST(DocLines, HaveAtMost100Columns) {
  constexpr size_t kColumns = 100;
  for (const std::string& page : test::doc_pages()) {
    std::istringstream text(test::text_of_page(page));
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (columns(line) > kColumns) {
        EXPECT_TRUE(cannot_be_broken(line)) << page << ':' << number << ": " << columns(line)
                                            << " columns, wanted at most " << kColumns << ": " << line;
      }
    }
  }
}

TEST(DocLines, HaveParagraphsOfAtMost80Words) {
  constexpr int kWords = 80;
  for (const std::string& page : test::doc_pages())
    for (const Paragraph& paragraph : paragraphs(page))
      EXPECT_LE(paragraph.words, kWords)
          << page << ':' << paragraph.line << ": shorten the paragraph, or make it a list or a table";
}

}  // namespace
}  // namespace megalith
