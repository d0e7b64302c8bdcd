// Comments are sentences, so none may begin like "Of a chunk's layers, those that are run again", which reads
// like the heading of a table column.
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

TEST(Comments, BeginNoSentenceWithOf) {
  static const test::Pattern kFragment("^\\s*//+ Of ");
  for (const char* folder : {"libcore", "apps", "bench", "tests"})
    for (const std::string& file : test::sources(folder)) {
      std::istringstream text(test::text_of(file));
      int number = 0;
      for (std::string line; std::getline(text, line);) {
        ++number;
        EXPECT_FALSE(kFragment.is_in(line)) << file << ':' << number << ": " << line;
      }
    }
}

}  // namespace
}  // namespace megalith
