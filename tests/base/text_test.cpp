#include "libcore/base/text.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(Quote, EscapesControlCharactersAndWhatIsNoUtf8) {
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote("a\u00e9\u20ac\U0001F600"), "\"a\u00e9\u20ac\U0001F600\"");
  EXPECT_EQ(quote("\"\\\n\x7f"), "\"\\\"\\\\\\x0a\\x7f\"");
  EXPECT_EQ(quote(std::string_view("\0z", 2)), "\"\\x00z\"");
  EXPECT_EQ(quote("a\xE2\x82z\xFF"), "\"a\\xe2\\x82z\\xff\"") << "a byte at a time";
}

TEST(AppendHex, WritesTheLastDigits) {
  std::string text = "0x";
  append_hex(text, 0xBEEF, 4);
  append_hex(text, 0x1F, 2);
  append_hex(text, 0xABCDE, 2);
  EXPECT_EQ(text, "0xbeef1fde");
  append_hex(text = {}, UINT64_MAX - 1, 16);
  EXPECT_EQ(text, "fffffffffffffffe");
}

TEST(Shortened, SplitsNoCodePoint) {
  EXPECT_EQ(shortened("", 0), "");
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc\u2026");
  EXPECT_EQ(shortened("abc", 0), "\u2026");
  const std::string text = "a\u00e9\u20ac\U0001F600z";  // its characters have 1, 2, 3, 4 and 1 bytes
  const std::vector<size_t> ends = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (size_t max = 0; max < ends.size(); ++max)
    EXPECT_EQ(shortened(text, max), text.substr(0, ends[max]) + "\u2026") << max;
  EXPECT_EQ(shortened(text, 11), text);
  // Text that is not UTF-8 is truncated exactly at the limit.
  EXPECT_EQ(shortened("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80\u2026");
  EXPECT_EQ(shortened("a\x80\x80\x80\x80\x80", 4), "a\x80\x80\x80\u2026");
}

TEST(Nearest, CountsASwapAsOneMistake) {
  const std::vector<std::string> words = {"held", "help", "hellebore"};
  EXPECT_EQ(nearest("hlep", words), "help");
  EXPECT_EQ(nearest("ehlp", words), "help");
  EXPECT_EQ(nearest("hpel", words), std::nullopt);  // two edits are too many for four letters
  EXPECT_EQ(nearest("helebroe", words), "hellebore");
}

TEST(Nearest, WantsAtMostAThirdOfTheWordWrong) {
  const std::vector<std::string> words = {"num-layers", "lr"};
  EXPECT_EQ(nearest("num-layer", words), "num-layers");
  EXPECT_EQ(nearest("nm-lyrs", words), std::nullopt);
  EXPECT_EQ(nearest("l", words), std::nullopt);  // words of fewer than three letters match nothing
  EXPECT_EQ(nearest("rl", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace megalith
