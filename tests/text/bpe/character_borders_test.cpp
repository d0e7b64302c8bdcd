#include "libcore/text/bpe/character_borders.h"

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"
#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {
namespace {

using Parts = std::vector<std::string>;

Parts parts_of(const CharacterBorders& borders, std::string_view text) {
  Parts parts;
  const FindPretokens find = [&](std::string_view utf8, std::span<uint32_t> ends) {
    return borders.find(utf8, ends);
  };
  for_each_pretoken(find, text, [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

// The merges are a+b, ab+c, é+a, 日+é and b+日.
const std::vector<std::string> kSymbols = {"",
                                           "a",
                                           "b",
                                           "c",
                                           "\u00e9",
                                           "\u65e5",
                                           "ab",
                                           "abc",
                                           "\u00e9"
                                           "a",
                                           "\u65e5\u00e9",
                                           "b\u65e5"};
const std::vector<TokenMerge> kMerges = {{1, 2, 6}, {6, 3, 7}, {4, 1, 8}, {5, 4, 9}, {2, 5, 10}};

TEST(CharacterBorders, CutWhereNoMergeJoinsTheTwoCharacters) {
  const CharacterBorders borders(kSymbols, kMerges, CharacterIds(kSymbols, {}));
  EXPECT_EQ(parts_of(borders, "abcabc"), (Parts{"abc", "abc"}));
  EXPECT_EQ(parts_of(borders,
                     "b\u65e5\u00e9"
                     "ab"),
            (Parts{"b\u65e5\u00e9"
                   "ab"}));
  EXPECT_EQ(parts_of(borders, "aab"), (Parts{"a", "ab"}));
  EXPECT_EQ(parts_of(borders, "xyz"), (Parts{"x", "y", "z"}));
  EXPECT_EQ(parts_of(borders, std::string(5000, 'a')), Parts(5000, "a"));
}

TEST(CharacterBorders, CutWhereNoTokenHasTheTwoCharactersAsNeighbours) {
  const std::vector<std::string> tokens = {"", "abc", "c\u65e5", "\u65e5\u65e5_", "a_", "\u00e9"};
  EXPECT_EQ(parts_of(CharacterBorders(tokens, ""), "abcabc\u65e5\u65e5_\u00e9ba_a"),
            (Parts{"abc", "abc\u65e5\u65e5_", "\u00e9", "b", "a_", "a"}));
  EXPECT_EQ(parts_of(CharacterBorders(tokens, "_"), "a_b\u65e5_ab"),
            (Parts{"a", "_", "b", "\u65e5", "_", "ab"}));
  EXPECT_EQ(parts_of(CharacterBorders(tokens, "\u65e5"), "c\u65e5\u65e5_"),
            (Parts{"c", "\u65e5", "\u65e5_"}));
}

TEST(CharacterBorders, AlwaysCutBeforeTheMark) {
  // Pairs share bits of a table, so of so many some would not be cut.
  std::vector<std::string> tokens;
  std::string text;
  for (uint32_t c = 0x100; c < 0x500; ++c) {
    std::string one;
    append_utf8(one, c);
    tokens.push_back(one + one);
    text += one + "\u2581";
  }
  EXPECT_GT(parts_of(CharacterBorders(tokens, "\u2581"), text).size(), 1024u);
  for (const std::string& part : parts_of(CharacterBorders(tokens, "\u2581"), text))
    EXPECT_EQ(part.find("\u2581", 1), std::string::npos);
}

TEST(CharacterBorders, LeaveARunOfUnknownCharactersTogetherIfItGivesOneToken) {
  const CharacterIds::Unknown unknown{.id = 0, .fuse = true};
  const CharacterBorders borders(kSymbols, kMerges, CharacterIds(kSymbols, unknown));
  EXPECT_EQ(parts_of(borders, "axyb\u732bz\u732b"), (Parts{"a", "xy", "b", "\u732bz\u732b"}));
}

TEST(CharacterBorders, KeepTheLongestOfGivenTextsWhole) {
  CharacterBorders borders(kSymbols, kMerges, CharacterIds(kSymbols, {}));
  borders.keep_whole({{.text = "bc"}, {.text = "bca"}, {.text = "\u65e5 x"}});
  EXPECT_EQ(borders.look_ahead(), 5u);
  EXPECT_EQ(parts_of(borders, "abcabc"), (Parts{"a", "bca", "bc"}));
  EXPECT_EQ(parts_of(borders, "\u65e5 x\u65e5 x\u65e5\u00e9"),
            (Parts{"\u65e5 x", "\u65e5 x", "\u65e5\u00e9"}));
}

}  // namespace
}  // namespace megalith
