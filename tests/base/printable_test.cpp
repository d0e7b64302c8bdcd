#include "libcore/base/printable.h"

#include <gtest/gtest.h>

namespace megalith::test {
namespace {

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

TEST(Printable, IsBounded) {
  EXPECT_EQ(printable(std::string(1000, 'a'), 4), "aaaa…");
  EXPECT_LE(printable(std::string(1 << 20, '\x1b'), 100).size(), 4U * 100 + 3);
  EXPECT_LE(quote_name(std::string(1 << 20, '\x1b')).size(), 4U * 200 + 5);
}

TEST(Printable, QuotesNames) {
  EXPECT_EQ(quote_name("node\x1b[2J \"1\""), "\"node\\x1b[2J \\\"1\\\"\"");
  EXPECT_EQ(quote_name("\xc2\x9b"), "\"\\xc2\\x9b\"");
}

}  // namespace
}  // namespace megalith::test
