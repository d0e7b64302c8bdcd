// Comments are sentences, so none may begin like "Of a chunk's layers, those that are run again", which reads
// like the heading of a table column.
#include <regex>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"

namespace megalith {
namespace {

TEST(Comments, BeginNoSentenceWithOf) {
  static const std::regex kFragment("^\\s*//+ Of ");
  for (const char* folder : {"libcore", "apps", "bench", "tests"})
    for (const std::string& file : test::sources(folder)) {
      std::istringstream text(test::text_of(file));
      int number = 0;
      for (std::string line; std::getline(text, line);) {
        ++number;
        EXPECT_FALSE(std::regex_search(line, kFragment)) << file << ':' << number << ": " << line;
      }
    }
}

}  // namespace
}  // namespace megalith
