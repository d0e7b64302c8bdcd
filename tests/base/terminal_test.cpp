#include "libcore/base/terminal.h"

#include <gtest/gtest.h>

#include "tests/support/environment.h"

namespace megalith {
namespace {

TEST(Terminal, HasTheColumnsOfTheEnvironmentWhereThereIsNone) {
  const test::Variable variable("COLUMNS", "132");
  EXPECT_EQ(columns_of(-1), 132u);
  for (const char* bad : {"", "wide", "0", "-5", "7"}) {
    const test::Variable other("COLUMNS", bad);
    EXPECT_EQ(columns_of(-1), 80u) << bad;
  }
}

TEST(Terminal, TakesWholeCharactersThatFit) {
  EXPECT_EQ(fitting("abc", 5), "abc");
  EXPECT_EQ(fitting("abc", 2), "ab");
  EXPECT_EQ(fitting("\u00e9\u4e2d\U0001F600", 2), "\u00e9\u4e2d");
}

TEST(Wrapped, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 8), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 13), "one two three");
  EXPECT_EQ(wrapped("one two three four", 10, "  "), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("extraordinarily long", 5), "extraordinarily\nlong");
  EXPECT_EQ(wrapped("  --a 1 --b 2", 8, "    ", " \\"), "  --a \\\n    1 \\\n    --b \\\n    2");
  EXPECT_EQ(wrapped("a b\nc d e", 3), "a b\nc d\ne");
  EXPECT_EQ(wrapped("", 10), "");
}

}  // namespace
}  // namespace megalith
