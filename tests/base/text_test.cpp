#include "libcore/base/text.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(ReplaceInvalidUtf8, SubstitutesMaximalSubparts) {
  // Wanted values: Python's bytes.decode("utf-8", errors="replace"), which follows the Unicode standard's
  // table 3-8.
  const std::string r = "\uFFFD";
  EXPECT_EQ(replace_invalid_utf8(""), "");
  EXPECT_EQ(replace_invalid_utf8("plain \u00e9 \u65e5 \U0001F600"), "plain \u00e9 \u65e5 \U0001F600");
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82"), "a" + r);
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"
                                 "a"),
            r + "a");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98\xE2\x82\xAC"), r + "\u20ac");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xAF\xF0\x80\x80"), r + r + r + r + r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xC3(\xFF"), r + "(" + r);
}

TEST(Shortened, CutsNoCodePointInTwo) {
  EXPECT_EQ(shortened("", 0), "");
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc\u2026");
  EXPECT_EQ(shortened("abc", 0), "\u2026");
  const std::string text = "a\u00e9\u20ac\U0001F600z";  // of 1, 2, 3, 4 and 1 bytes
  const std::vector<size_t> ends = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (size_t max = 0; max < ends.size(); ++max)
    EXPECT_EQ(shortened(text, max), text.substr(0, ends[max]) + "\u2026") << max;
  EXPECT_EQ(shortened(text, 11), text);
  // What is no UTF-8 is cut where it must be.
  EXPECT_EQ(shortened("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80\u2026");
  EXPECT_EQ(shortened("a\x80\x80\x80\x80\x80", 4), "a\x80\x80\x80\u2026");
}

TEST(Nearest, CountsASwapAsOneMistake) {
  const std::vector<std::string> words = {"held", "help", "hellebore"};
  EXPECT_EQ(nearest("hlep", words), "help");
  EXPECT_EQ(nearest("ehlp", words), "help");
  EXPECT_EQ(nearest("hpel", words), std::nullopt);  // two mistakes in four letters
  EXPECT_EQ(nearest("helebroe", words), "hellebore");
}

TEST(CountCodePoints, CountsCharactersOfOneToFourBytes) {
  EXPECT_EQ(count_code_points(""), 0);
  EXPECT_EQ(count_code_points("a\u00e9\u4e2d\U0001F600"), 4);
}

TEST(Nearest, WantsAtMostAThirdOfTheWordWrong) {
  const std::vector<std::string> words = {"num-layers", "lr"};
  EXPECT_EQ(nearest("num-layer", words), "num-layers");
  EXPECT_EQ(nearest("nm-lyrs", words), std::nullopt);
  EXPECT_EQ(nearest("l", words), std::nullopt);  // any letter is one mistake away from a word of two
  EXPECT_EQ(nearest("rl", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace megalith
