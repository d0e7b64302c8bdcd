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

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("", 10), "");
  EXPECT_EQ(printable("a \"b\" \\ \u00e9\u20ac\U0001F600", 100), "a \"b\" \\ \u00e9\u20ac\U0001F600");
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b]0;title\x07\r\n\x7f", 100), "\\x1b]0;title\\x07\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J\xc2\xa0",
                      100),
            "a\\xc2\\x9b2J\xc2\xa0")
      << "CSI, and a space that stays";
  EXPECT_EQ(printable("\xff\xe2\x82", 100), "\\xff\\xe2\\x82");
  for (int byte = 0; byte < 256; ++byte)
    for (const char c : printable(std::string(1, static_cast<char>(byte)), 100))
      EXPECT_TRUE(c >= 0x20 && c < 0x7f) << byte;
}

// Unicode's format characters (category Cf) and its ends of lines and paragraphs: they reorder or hide text.
TEST(Printable, EscapesWhatReordersOrHidesText) {
  for (const char* text :
       {"\u00ad", "\u061c", "\u180e", "\u200b", "\u200e",     "\u200f",     "\u2028",    "\u2029", "\u202a",
        "\u202b", "\u202c", "\u202d", "\u202e", "\u2060",     "\u2066",     "\u2067",    "\u2068", "\u2069",
        "\u206f", "\ufeff", "\ufff9", "\ufffb", "\U000e0001", "\U000e0041", "\U000e007f"})
    for (const char c : quote_name(text)) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << quote_name(text);
  EXPECT_EQ(quote_name("a\u202etxt.exe"), "\"a\\xe2\\x80\\xaetxt.exe\"");
  for (const std::string text : {"\u00e9", "\u0645\u200c\u0645", "\U0001f469\u200d\U0001f52c", "\u2027\u202f",
                                 "\u2010", "\ufffd", "\U000e0100"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, IsBounded) {
  EXPECT_EQ(printable_message("aaaaa\n  bbbbb", 4), "aaaa…\n  bbbb…");
  EXPECT_EQ(printable(std::string(1000, 'a'), 4), "aaaa…");
  EXPECT_LE(printable(std::string(1 << 20, '\x1b'), 100).size(), 4U * 100 + 3);
  EXPECT_LE(quote_name(std::string(1 << 20, '\x1b')).size(), 4U * 200 + 5);
}

TEST(Printable, KeepsTheLinesOfAReport) {
  EXPECT_EQ(printable_lines("a\x1b\n\tb\r\n"), "a\\x1b\n\tb\\x0d\n");
  EXPECT_EQ(printable_lines(""), "");
}

TEST(Printable, LetsNoNameInAMessageLookLikeALine) {
  EXPECT_EQ(printable_message("x: error: /data/a\nx: error: no\tb: differs\n  --lr: 1\n  --wd: 2"),
            "x: error: /data/a\\x0ax: error: no\\x09b: differs\n  --lr: 1\n  --wd: 2");
  EXPECT_EQ(printable_message("a\n b\n\n  c\r\n\td\n"), "a\\x0a b\\x0a\n  c\\x0d\\x0a\\x09d\\x0a");
  EXPECT_EQ(printable_message(""), "");
}

TEST(Printable, QuotesNames) {
  EXPECT_EQ(quote_name("node\x1b[2J \"1\""), "\"node\\x1b[2J \\\"1\\\"\"");
  EXPECT_EQ(quote_name("\xc2\x9b"), "\"\\xc2\\x9b\"");
}

}  // namespace
}  // namespace megalith
