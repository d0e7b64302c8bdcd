// Pages are read in terminals and compared line by line, so their lines are short.
#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"

namespace megalith {
namespace {

/// The number of characters in a UTF-8 line: its bytes except continuation bytes.
size_t columns(const std::string& line) {
  return static_cast<size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// A table row, or a single word (an address) after the indentation or list marker.
bool cannot_be_broken(const std::string& line) {
  const size_t word = line.find_first_not_of(" -");
  return word == line.npos || line[word] == '|' || line.find(' ', word) == line.npos;
}

// A longer command continues after a backslash; a longer log line is wrapped and the page says so.
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

}  // namespace
}  // namespace megalith
