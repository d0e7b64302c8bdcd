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
