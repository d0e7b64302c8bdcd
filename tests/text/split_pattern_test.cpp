#include "libcore/text/split_pattern.h"

#include <gtest/gtest.h>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The pretokens with a bar between them.
std::string cut(const std::vector<SplitPattern>& patterns, const std::string& text) {
  std::vector<std::string> pieces;
  for_each_pretoken(pretokenizer(patterns), text,
                    [&](std::string_view piece) { pieces.emplace_back(piece); });
  return join(pieces, "|");
}

std::string cut(const std::vector<std::string>& regexes, const std::string& text) {
  std::vector<SplitPattern> patterns;
  for (const std::string& regex : regexes) patterns.push_back(*split_pattern(regex));
  return cut(patterns, text);
}

TEST(SplitPattern, KnowsOnlyWhatItCanFind) {
  for (const char* regex :
       {"", "a", "a+", "[^a]+", "[a-", "[b-a]", "[a]]", "[[:alpha:]]+", "\\w+", "\\p{Han}+", "[a]{2}",
        "[a]{1,x}", "[a]{1,10}", "[a]++", "(?i:a)", "\\s?", "[a&&b]"})
    EXPECT_FALSE(split_pattern(regex)) << regex;
}

TEST(SplitPattern, CutsBySetsOfCharacters) {
  EXPECT_EQ(cut({"\\p{N}{1,3}"}, "a1234567b"), "a|123|456|7|b");
  EXPECT_EQ(cut({"[\\r\\n]"}, "a\n\n\rb"), "a|\n|\n|\r|b");
  EXPECT_EQ(cut({"[\r\n]"}, "a\n\n\rb"), "a|\n|\n|\r|b");
  EXPECT_EQ(cut({"\\s?\\p{L}+"}, "ab  cd.\u00e9"), "ab| | cd|.|\u00e9");
  EXPECT_EQ(cut({"\\s?[!-/:-~]+"}, "- ./1 ("), "-| ./|1| (");
  EXPECT_EQ(cut({"[\u4e00-\u9fa5\u3040-\u309f]+"}, "a\u65e5\u3042b"), "a|\u65e5\u3042|b");
  EXPECT_EQ(cut({"[a\\-\\]]+"}, "xa-]-y"), "x|a-]-|y");
  EXPECT_EQ(cut({"\\s+$"}, "a \n b  "), "a| |\n b|  ");
}

TEST(SplitPattern, CutsPiecesOfPieces) {
  EXPECT_EQ(cut({digits_pattern(true), gpt2_split_pattern()}, "it's 12 ab"), "it|'s| |1|2| ab");
  EXPECT_EQ(cut({digits_pattern(false), gpt2_split_pattern()}, "x 12 ab"), "x| |12| ab");
  EXPECT_EQ(cut(std::vector<SplitPattern>{}, "a b"), "a b");
}

TEST(SplitPattern, FindsTheSameInPartsOfALongText) {
  // Pretokens longer than what is looked at at once, ends of it inside characters.
  const std::vector<SplitPattern> patterns = {digits_pattern(true), *split_pattern("\\s?\\p{L}+"),
                                              *split_pattern("\\s+$")};
  std::string text, wanted;
  for (int i = 1; i < 60; ++i) {
    text += std::string(static_cast<size_t>(i * i), '\t') + "1";
    wanted += std::string(static_cast<size_t>(i * i), '\t') + "|1|";
    std::string word;
    for (int k = 0; k < i * 37; ++k) word += "\u00e9";
    text += " " + word;
    wanted += " " + word + "|";
  }
  wanted.pop_back();
  EXPECT_EQ(cut(patterns, text), wanted);
}

TEST(SplitPattern, BeginsPretokensAtMarks) {
  const std::string mark = "\u2581";
  EXPECT_EQ(cut(std::vector{mark_pattern(mark, true)}, "a\u2581\u2581b\u2581"), "a|\u2581|\u2581b|\u2581");
  EXPECT_EQ(cut(std::vector{mark_pattern(mark, false)}, "a\u2581\u2581b\u2581"), "a|\u2581\u2581b|\u2581");
  EXPECT_EQ(cut(std::vector{mark_pattern(mark, true), digits_pattern(true)}, "\u2581a1\u25812"),
            "\u2581a|1|\u2581|2");
}

}  // namespace
}  // namespace megalith
