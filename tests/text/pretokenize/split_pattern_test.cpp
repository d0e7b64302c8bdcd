#include "libcore/text/pretokenize/split_pattern.h"

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "libcore/text/pretokenize/character_patterns.h"
#include "tests/text/pretokenize/scan_check.h"

namespace megalith {
namespace {

/// The pretokens of `text`, joined by bars.
std::string cut(const std::vector<SplitPattern>& patterns, const std::string& text) {
  std::vector<std::string> pieces;
  for_each_pretoken(pretokenizer(patterns), text,
                    [&](std::string_view piece) { pieces.emplace_back(piece); });
  return join(pieces, "|");
}

std::string cut(const std::vector<std::string>& regexes, const std::string& text) {
  std::vector<SplitPattern> patterns;
  for (const std::string& regex : regexes) patterns.push_back(split_pattern(regex));
  return cut(patterns, text);
}

TEST(SplitPattern, RefusesWhatIsNotSupported) {
  for (const char* regex : {"", "[a-", "[b-a]", "[[:alpha:]]+", "\\p{Unheard}+", "(?<=a)b", "\\s?"}) {
    EXPECT_THROW(split_pattern(regex), UnsupportedPattern) << regex;
    EXPECT_THROW(split_pattern_of_bytes(regex), UnsupportedPattern) << regex;
  }
}

// As in Hugging Face tokenizers 0.23.3, of which Split and Punctuation were asked for these pieces.
TEST(SplitPattern, SplitsAtTexts) {
  const auto at = [](const char* text, TextCut where, const std::string& in) {
    return cut(std::vector{text_pattern(text, where)}, in);
  };
  EXPECT_EQ(at("-", TextCut::kAround, "the-final--countdown"), "the|-|final|-|-|countdown");
  EXPECT_EQ(at("-", TextCut::kAroundRuns, "the-final--countdown"), "the|-|final|--|countdown");
  EXPECT_EQ(at("-", TextCut::kAfter, "the-final--countdown"), "the-|final-|-|countdown");
  EXPECT_EQ(at("-", TextCut::kBefore, "the-final--countdown"), "the|-final|-|-countdown");
  EXPECT_EQ(at("aa", TextCut::kAround, "aaaba"), "aa|aba");
  EXPECT_EQ(at("aa", TextCut::kAfter, "baaaa"), "baa|aa");
  EXPECT_EQ(at("\u65e5", TextCut::kAfter, "\u672c\u65e5\u672c"), "\u672c\u65e5|\u672c");
  const std::string gap(100'000, 'x');
  EXPECT_EQ(at("ab", TextCut::kAround, gap + "a" + gap + "ab" + gap), gap + "a" + gap + "|ab|" + gap);
  EXPECT_EQ(at("ab", TextCut::kAfter, gap + "ab" + gap), gap + "ab|" + gap);
}

TEST(SplitPattern, SplitsAtPunctuation) {
  EXPECT_EQ(cut(std::vector{punctuation_pattern(true)}, "a!!b\u3002$"), "a|!|!|b|\u3002|$");
  EXPECT_EQ(cut(std::vector{punctuation_pattern(false)}, "a!!b\u3002$"), "a|!!|b|\u3002$");
}

// U+00B2 is C2 B2 in UTF-8: in the byte alphabet these are a letter and a digit.
TEST(SplitPattern, SplitsAtBytes) {
  EXPECT_EQ(cut(std::vector{digits_pattern_of_bytes(false)}, "a12\u00b2b"), "a|12|\xC2|\xB2|b");
  EXPECT_EQ(cut(std::vector{split_pattern_of_bytes("\\p{L}+")}, "12\u00e9b"), "12|\xC3|\xA9|b");
  EXPECT_EQ(cut({gpt2_split_pattern(), split_pattern_of_bytes("[0-9][0-9][0-9]")}, " 12345 \u65e51"),
            " |123|45| \u65e5|1");
}

TEST(SplitPattern, SplitsBySetsOfCharacters) {
  EXPECT_EQ(cut({"\\p{N}{1,3}"}, "a1234567b"), "a|123|456|7|b");
  EXPECT_EQ(cut({"[\\r\\n]"}, "a\n\n\rb"), "a|\n|\n|\r|b");
  EXPECT_EQ(cut({"[\r\n]"}, "a\n\n\rb"), "a|\n|\n|\r|b");
  EXPECT_EQ(cut({"\\s?\\p{L}+"}, "ab  cd.\u00e9"), "ab| | cd|.|\u00e9");
  EXPECT_EQ(cut({"\\s?[!-/:-~]+"}, "- ./1 ("), "-| ./|1| (");
  EXPECT_EQ(cut({"[\u4e00-\u9fa5\u3040-\u309f]+"}, "a\u65e5\u3042b"), "a|\u65e5\u3042|b");
  EXPECT_EQ(cut({"[a\\-\\]]+"}, "xa-]-y"), "x|a-]-|y");
  EXPECT_EQ(cut({"\\s+$"}, "a \n b  "), "a| |\n b|  ");
}

TEST(SplitPattern, SplitsPiecesOfPieces) {
  EXPECT_EQ(cut({digits_pattern(true), gpt2_split_pattern()}, "it's 12 ab"), "it|'s| |1|2| ab");
  EXPECT_EQ(cut({digits_pattern(false), gpt2_split_pattern()}, "x 12 ab"), "x| |12| ab");
  EXPECT_EQ(cut(std::vector<SplitPattern>{}, "a b"), "a b");
}

// The expressions match these words, and are not the patterns that are called so.
TEST(SplitPattern, TellsExpressionsFromNamesOfOtherPatterns) {
  EXPECT_EQ(cut({split_pattern("digits"), gpt2_split_pattern()}, "digits 12"), "digits| 12");
  EXPECT_EQ(cut({digits_pattern(true), split_pattern("gpt-2")}, "a b 12"), "a b |1|2");
  EXPECT_EQ(cut({"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", "deepseek-v3"}, "a, b"),
            "a, b");
}

TEST(SplitPattern, FindsTheSameInPartsOfALongText) {
  // Pretokens longer than the parts in which a text is examined; the parts end inside characters.
  const std::vector<SplitPattern> patterns = {digits_pattern(true), split_pattern("\\s?\\p{L}+"),
                                              split_pattern("\\s+$")};
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

// With another name, the first pattern is not recognized as DeepSeek-V3's, so the three are applied one after
// the other.
TEST(SplitPattern, SplitsByDeepSeekV3sPatternsAtOnceAsOneByOne) {
  const std::vector<SplitPattern> together = {
      split_pattern("\\p{N}{1,3}"), split_pattern("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
      split_pattern(
          R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")};
  std::vector<SplitPattern> apart = together;
  apart[0].name = "numbers";
  std::string every;
  for (uint32_t code = 0; code < 0x110000; code += code < 0x32400 ? 1 : 61) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string c = utf8(code);
    every += c + "a" + c + "1" + c + " " + c + c + "!" + c + "\n" + c + "\u4e2d" + c + "  " + c + "\x01";
    if (every.size() < 60'000) continue;
    ASSERT_EQ(cut(together, every), cut(apart, every));
    every.clear();
  }
  EXPECT_EQ(cut(together, every), cut(apart, every));
  std::mt19937 random(5);
  const std::string parts[] = {"a",      "B",      " ",      "  ",     "\n",        "\r",
                               "1",      "23",     "!",      "'",      "\u4e2d",    "\u30fb",
                               "\u3099", "\u3097", "\u0660", "\u0301", "\u00e9",    "\u3000",
                               "\u00a0", "\x01",   "\u200d", "/",      "\U0001F600"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t n = 1 + random() % 30; n > 0; --n) text += parts[random() % std::size(parts)];
    ASSERT_EQ(cut(together, text), cut(apart, text)) << quote(text);
  }
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
