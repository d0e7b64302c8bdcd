#include "libcore/text/bpe/added_tokens.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

/// The text between added tokens and their ids, in order: "x|1|y|".
std::string parts(const AddedTokens& added, std::string_view text) {
  std::string out;
  added.split(
      text, [&](std::string_view plain) { out += std::string(plain) + "|"; },
      [&](int32_t id) { out += std::to_string(id) + "|"; });
  return out;
}

TEST(AddedTokens, FindsTheLeftmostAndOfThoseTheLongest) {
  const AddedTokens added({{.text = "<a>", .id = 1}, {.text = "<a><b>", .id = 2}, {.text = "<b>", .id = 3}});
  EXPECT_EQ(parts(added, "x<a><b><a>"), "x|2|1|");
  EXPECT_EQ(parts(added, "<<b>c"), "<|3|c|");
  EXPECT_EQ(parts(added, "<a"), "<a|");
  EXPECT_EQ(parts(added, ""), "");
}

TEST(AddedTokens, FindsThoseThatBeginDifferently) {
  const AddedTokens added({{.text = "[X]", .id = 1}, {.text = "<X>", .id = 2}, {.text = "\u00e9", .id = 3}});
  EXPECT_EQ(parts(added, "<X>\u00e9[X]\u00e8"), "2|3|1|\u00e8|");
}

TEST(AddedTokens, AreFoundAtEveryPlaceOfALongText) {
  // Those with few first bytes are looked for many bytes at a time.
  const std::vector<AddedToken> few = {
      {.text = "  ", .id = 1}, {.text = "[P]", .id = 2}, {.text = "<a>", .id = 3}};
  std::vector<AddedToken> any_second = few;
  any_second.push_back({.text = "{", .id = 4});
  std::vector<AddedToken> many = few;
  for (const char* text : {"{", "}}", "\u00e9"}) many.push_back({.text = text, .id = 4});
  for (const auto& tokens : {few, any_second, many})
    for (size_t before = 0; before < 70; ++before)
      for (size_t behind = 0; behind < 40; ++behind) {
        const std::string x(before, 'x'), y(behind, 'y');
        EXPECT_EQ(parts(AddedTokens(tokens), x + "<a> [ <b" + y + "[P]z  "),
                  x + (before > 0 ? "|" : "") + "3| [ <b" + y + "|2|z|1|");
      }
}

TEST(AddedTokens, FindsSomeOnlyWhereTheyAreAlone) {
  const AddedTokens added({{.text = "ab", .id = 1, .only_alone = true}, {.text = "b", .id = 2}});
  EXPECT_EQ(parts(added, "ab ab,ab"), "1| |1|,|1|");
  EXPECT_EQ(parts(added, "xab abx \u00e9ab ab\u0301 ab_ 1ab"), "xab abx \u00e9ab ab\u0301 ab_ 1ab|");
  EXPECT_EQ(parts(added, "xabb \u2014ab\u2014"), "xab|2| \u2014|1|\u2014|");
}

TEST(AddedTokens, TellsManyThatBeginAlikeApart) {
  std::vector<AddedToken> tokens;
  for (int id = 0; id < 300; ++id) tokens.push_back({.text = "<" + std::to_string(id) + ">", .id = id});
  tokens.push_back({.text = "<", .id = 300});
  tokens.push_back({.text = "<1", .id = 301});
  EXPECT_EQ(parts(AddedTokens(tokens), "<17><299><300><1"), "17|299|300|300>|301|");
}

TEST(AddedTokens, TakesWhiteSpaceAlong) {
  const AddedTokens before({{.text = "M", .id = 1, .takes_space_before = true}});
  EXPECT_EQ(parts(before, "a \u00a0\tM M "), "a|1|1| |");
  const AddedTokens after({{.text = "M", .id = 1, .takes_space_after = true}});
  EXPECT_EQ(parts(after, "M \u3000\nb M"), "1|b |1|");
  const AddedTokens both({{.text = "M", .id = 1, .takes_space_before = true, .takes_space_after = true}});
  EXPECT_EQ(parts(both, " M  M "), "1|1|");
}

// As in tokenizers 0.23.3: " x" is found although "M" has already taken the white space, of which " x" needs
// the last blank.
TEST(AddedTokens, MayBeginInWhiteSpaceThatAnotherTook) {
  const AddedTokens added({{.text = "M", .id = 1, .takes_space_after = true}, {.text = " x", .id = 2}});
  EXPECT_EQ(parts(added, "M  xy"), "1|2|y|");
}

// Flags as published files mix them, and texts of white space alone, of which each token takes a part. If
// each token went through all white space after it, a text of 400,000 bytes would be read 100,000 times.
TEST(AddedTokens, ReadWhiteSpaceOnlyOnce) {
  std::vector<AddedToken> tokens;
  int32_t id = 0;
  for (const char* text : {"  ", "\n", "\n\n", "\t", " \n", "M"})
    tokens.push_back({.text = text,
                      .id = id++,
                      .takes_space_before = id % 2 == 0,
                      .takes_space_after = id % 3 > 0,
                      .only_alone = id % 5 == 0});
  const AddedTokens added(tokens);
  for (const char* unit : {"  ", "\n", "\t", " \n", "M  ", "a  ", "\n\n\t "}) {
    std::string text;
    while (text.size() < 400'000) text += unit;
    size_t ids = 0;
    const size_t read = added.split(
        text, [](std::string_view) {}, [&](int32_t) { ++ids; });
    EXPECT_GT(ids, text.size() / 8) << unit;
    EXPECT_LE(read, 2 * text.size()) << unit;
  }
}

TEST(AddedTokens, CountTheWhiteSpaceThatTheyRead) {
  const AddedTokens both({{.text = "M", .id = 1, .takes_space_before = true, .takes_space_after = true}});
  const auto read = [&](std::string_view text) {
    return both.split(
        text, [](std::string_view) {}, [](int32_t) {});
  };
  EXPECT_EQ(read("a  b"), 0U);
  EXPECT_EQ(read("a  M   b"), 5U);
  EXPECT_EQ(read("a M  M b"), 4U) << "what the first one took is not read again";
}

TEST(AddedTokens, AreNowhereWhenThereAreNone) {
  EXPECT_EQ(parts(AddedTokens(), "text"), "text|");
}

}  // namespace
}  // namespace megalith
