#include "libcore/base/shell_word.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(ShellWord, HasQuotesOnlyWhereTheShellNeedsThem) {
  EXPECT_EQ(shell_word("/data/a_b-1.2:3,4=5@6+7%"), "/data/a_b-1.2:3,4=5@6+7%");
  EXPECT_EQ(shell_word(""), "\"\"");
  EXPECT_EQ(shell_word("two words, it's"), "\"two words, it's\"");
  EXPECT_EQ(shell_word("\"$HOME\\`"), "\"\\\"\\$HOME\\\\\\`\"");
}

TEST(ShellWord, ShowsNoControlCharacterAndIsReadBackByBash) {
  EXPECT_EQ(shell_word("a\x1b[1m'\\\n\xff"), "$'a\\x1b[1m\\'\\\\\\x0a\\xff'");
  EXPECT_EQ(shell_word("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
  for (int byte = 1; byte < 256; ++byte) {
    const std::string word = concat("a", static_cast<char>(byte), "1");
    test::TempDir folder;
    write_file(folder / "script", "printf %s " + shell_word(word));
    EXPECT_EQ(test::run_command("bash " + folder / "script").out, word) << byte;
  }
}

TEST(SingleQuoted, EndsTheQuotesForAQuote) {
  EXPECT_EQ(single_quoted(""), "''");
  EXPECT_EQ(single_quoted("a \"$b\""), "'a \"$b\"'");
  EXPECT_EQ(single_quoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace megalith
