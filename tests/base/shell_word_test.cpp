#include "libcore/base/shell_word.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(ShellWord, HasQuotesOnlyWhereTheShellNeedsThem) {
  EXPECT_EQ(shell_word("/data/a_b-1.2:3,4=5@6+7%"), "/data/a_b-1.2:3,4=5@6+7%");
  EXPECT_EQ(shell_word(""), "\"\"");
  EXPECT_EQ(shell_word("two words, it's"), "\"two words, it's\"");
  EXPECT_EQ(shell_word("\"$HOME\\`"), "\"\\\"\\$HOME\\\\\\`\"");
}

TEST(SingleQuoted, EndsTheQuotesForAQuote) {
  EXPECT_EQ(single_quoted(""), "''");
  EXPECT_EQ(single_quoted("a \"$b\""), "'a \"$b\"'");
  EXPECT_EQ(single_quoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace megalith
