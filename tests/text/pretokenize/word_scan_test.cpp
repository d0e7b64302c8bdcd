#include "libcore/text/pretokenize/word_scan.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/pretokenize/split_pattern.h"
#include "tests/support/environment.h"
#include "tests/support/isa.h"
#include "tests/text/pretokenize/scan_check.h"

namespace megalith {
namespace {

struct Pattern {
  const char* name;
  WordPattern pattern;
  std::vector<SplitPattern> definition;  // applied one after the other
};

/// DeepSeek-V3's patterns, written so that they are compiled and not known.
std::vector<SplitPattern> compiled_deepseek3() {
  return {
      split_pattern("(?:\\p{N}{1,3})"), split_pattern("(?:[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+)"),
      split_pattern(
          R"(([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")};
}

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> kAll = {
      {"llama-3",
       WordPattern::kLlama3,
       {split_pattern(
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")}},
      {"qwen2",
       WordPattern::kQwen2,
       {split_pattern(
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")}},
      {"qwen3.5",
       WordPattern::kQwen35,
       {split_pattern(
           R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")}},
      {"nemotron",
       WordPattern::kNemotron,
       {split_pattern(
           R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)")}},
      {"o200k",
       WordPattern::kO200k,
       {split_pattern(
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)")}},
      {"tekken",
       WordPattern::kTekken,
       {split_pattern(
           R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)")}},
      {"deepseek-v3", WordPattern::kDeepSeek3, compiled_deepseek3()}};
  return kAll;
}

/// The block kernels that this processor can run.
std::vector<std::pair<const char*, FindWords>> kernels(WordPattern pattern) {
  std::vector<std::pair<const char*, FindWords>> out;
  for (const Isa isa : test::runnable_isas()) {
    const FindWords find = find_words(pattern, isa, nullptr);
    if (find != nullptr && (out.empty() || out.back().second != find)) out.emplace_back(name(isa), find);
  }
  return out;
}

Ends wanted(const std::vector<SplitPattern>& definition, std::string_view text) {
  if (definition.size() > 1) return found(pretokenizer(definition), text);
  const char* const end = text.data() + text.size();
  Ends ends;
  for (const char* at = text.data(); at < end;) {
    at = definition[0].match(at, Window(end, false));
    ends.push_back(static_cast<size_t>(at - text.data()));
  }
  return ends;
}

void expect_all_equal(std::string_view text, size_t room = 4096) {
  for (const Pattern& pattern : patterns()) {
    const Ends right = wanted(pattern.definition, text);
    for (const auto& [name, find] : kernels(pattern.pattern))
      ASSERT_EQ(found(find, text, room), right) << pattern.name << " " << name << " " << quote(text);
  }
}

TEST(WordScan, SplitsAtEveryCodePointAsTheDefinitionDoes) {
  std::string text;
  // Tests one in 61 code points of the planes that are unassigned or for private use.
  const auto is_empty = [](uint32_t code) { return code >= 0x32400 && (code < 0xE0000 || code >= 0xE0200); };
  for (uint32_t code = 0; code < 0x110000; code += is_empty(code) ? 61 : 1) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string c = utf8(code);
    for (const char* before :
         {"a", "A", "\xE4\xB8\xAD", "1", "!", " ", "\n", " \n", ".'", "!!", " .", "\xE3\x80\x80", "\xC2\xA0"})
      text += before + c;
    text += c + "a" + c + "A" + c + "B" + c + "1" + c + c + c + "! " + c + c + " " + c + "\n" + c + "'" + c +
            "'s";
    if (text.size() > 60'000) {
      expect_all_equal(text);
      text.clear();
    }
  }
  expect_all_equal(text);
}

TEST(WordScan, SplitsAtEveryPlaceOfABlock) {
  for (const char* piece : {"'s",
                            "'T",
                            "'re",
                            "'vE",
                            "'m",
                            "'lL",
                            "'d",
                            "'\xC5\xBF",
                            "'\xC5\xBFx",
                            "'sam",
                            "''s",
                            " 's",
                            "'l",
                            "'v e",
                            "'s's'll've",
                            "\n",
                            "\r\n",
                            "\n\n",
                            "!\n",
                            "!\n\n ",
                            "!\n \n ",
                            " !\r\n\r\n  a",
                            "\n \n",
                            "\n \n ",
                            "\n\t\t",
                            "\n\t\ta",
                            "\n  1",
                            "\n  !",
                            "\t ",
                            "\t!",
                            "\t!a",
                            "!a",
                            " !a",
                            "!!a",
                            " \n",
                            "  x",
                            "   ",
                            "1",
                            "12",
                            "123",
                            "1234",
                            "1234567",
                            "12\xD9\xA0\xD9\xA1\xD9\xA2",
                            "\xC2\xA0",
                            "\xE3\x80\x80\xE3\x80\x80",
                            " \xE3\x80\x80",
                            "\xE3\x80\x80x",
                            "\n\xE3\x80\x80\n\xE3\x80\x80x",
                            "\xE2\x80\x83\xC2\xA0 y",
                            "\xE6\x97\xA5\xE6\x9C\xAC",
                            "\xF0\x9F\x98\x80",
                            "\xF0\x9F\x98\x80x",
                            "\xF0\xA0\xAE\xB7",
                            "\xF0\x9D\x9F\x98",
                            "e\xCC\x81",
                            "\xCC\x81x",
                            "\xD0\xBF",
                            "iPhone",
                            "ABCdefG",
                            "don'Tx",
                            "aB'lLC",
                            "\xE4\xB8\xAD"
                            "AB\xE4\xB8\xAD"
                            "C",
                            "\xE4\xB8\xAD"
                            "Ab\xE4\xB8\xAD"
                            "C",
                            "!!\xCC\x81'sx",
                            "!!\xCC\x81\n/!x",
                            "!\n//a",
                            "!\n/\n/!a",
                            "//\n/",
                            "\xD0\x96\xD0\xB8\xD0\x96",
                            "\xC3\x97",
                            "(na\u00efve",
                            "'\u00e9t\u00e9",
                            "\x01\x01"
                            "a",
                            "\x7F!a",
                            "\u200bx",
                            "\u200b\u200b ",
                            "\u30fb",
                            "\u3042\u30fb\u3042",
                            "\u309b\n",
                            "\u3040\u3042",
                            "\u3040\u0301",
                            "\u9fa6\u9fa5",
                            "  \u4e00",
                            " \u30fb!a"})
    for (size_t before = 0; before < 67; ++before)
      for (const char fill : {'x', '0', '!', ' ', '\n'})
        for (const char* after : {"", "x", " ", "1", "\n x", "!", "\xE6\x97\xA5"})
          expect_all_equal(std::string(before, fill) + piece + after);
}

TEST(WordScan, SplitsRandomTextsAsTheDefinitionDoes) {
  std::mt19937 random(3);
  const auto pick = [&](uint32_t first, uint32_t last) {
    return static_cast<uint32_t>(first + random() % (last - first));
  };
  constexpr std::string_view kTypical = "ast 'rvemlldE \n\t09!.B \r\n12";
  const std::string cased[] = {"a",        "B",        "C",        "/",        "\n",       "!",
                               "'s",       "'L",       "l",        " ",        "1",        "\xE4\xB8\xAD",
                               "\xCC\x81", "\xD0\x96", "\xD0\xB8", "\xCA\xB0", "\xC7\x85", "\xE2\x9D\xA4",
                               "\r",       "\u3042",   "\u30fb",   "\u3040",   "\x01",     "\u200b"};
  for (int round = 0; round < 8000; ++round) {
    std::string text;
    const size_t kind = random() % 8, size = 1 + random() % 400;
    while (text.size() < size) {
      if (kind < 2)
        text += kTypical[random() % kTypical.size()];
      else if (kind < 3)
        text += utf8(pick(0x20u, 0x80u));
      else if (kind < 4)  // long runs
        text += std::string(1 + random() % (random() % 8 == 0 ? 200 : 5), " \n\t 1a!'"[random() % 8]);
      else if (kind < 5)  // cases, marks and tails
        text += cased[random() % std::size(cased)];
      else
        text += random() % 3 == 0 ? std::string(1 + random() % 3, " 'sx1\n!"[random() % 7])
                                  : utf8(kind == 5   ? pick(0x80u, 0x800u)
                                         : kind == 6 ? pick(0x2000u, 0xA000u)
                                                     : pick(0x10000u, 0x20000u));
    }
    expect_all_equal(text, random() % 2 == 0 ? kMinEnds : 4096);
  }
}

TEST(WordScan, LooksAsFarAheadAsSpacesGo) {
  for (const size_t spaces : {1u, 62u, 63u, 64u, 65u, 126u, 127u, 128u, 129u, 200u, 1000u})
    for (size_t before = 0; before < 66; ++before)
      for (const char* kind : {" ", "\t", "\xE3\x80\x80", "\xC2\xA0 "})
        for (const char* after : {"", "\n", "x", "\n x", "\r\n", "!", "\xE3\x80\x80\n"}) {
          std::string text = std::string(before, 'a') + "\n";
          while (text.size() < before + spaces) text += kind;
          expect_all_equal(text + after);
          expect_all_equal(std::string(before, '!') + text.substr(before) + after);
        }
}

TEST(WordScan, FindsDeepSeeksPretokensWithoutKernelsToo) {
  const std::vector<SplitPattern> known = {
      split_pattern("\\p{N}{1,3}"), split_pattern("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
      split_pattern(
          R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")};
  const test::Variable generic("MEGALITH_ISA", "generic");
  const FindPretokens find = pretokenizer(known);
  const std::vector<SplitPattern> definition = compiled_deepseek3();
  std::mt19937 random(5);
  const char* const kParts[] = {"a",      "!",      " ",      "\n",     "12",   "\u4e00",
                                "\u30fb", "\u3040", "\u0301", "\u00e9", "\x01", "\t"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (size_t n = 1 + random() % 30; n > 0; --n) text += kParts[random() % std::size(kParts)];
    ASSERT_EQ(found(find, text), wanted(definition, text)) << quote(text);
  }
}

TEST(WordScan, ContinuesWhereItsRoomEnds) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += i % 7 == 0 ? "a'll " : i % 5 == 0 ? "\n\n  x" : i % 3 == 0 ? "12345" : ".a";
  expect_all_equal(text, kMinEnds);
  expect_all_equal(std::string(100'000, 'a') + text, kMinEnds);
}

TEST(WordScan, KnowsNoCaseWhereThePatternHasNone) {
  for (const WordPattern pattern : {WordPattern::kLlama3, WordPattern::kQwen2, WordPattern::kQwen35,
                                    WordPattern::kNemotron, WordPattern::kDeepSeek3})
    EXPECT_THROW(first_cased_pretoken(pattern), Error);
  EXPECT_EQ(first_cased_pretoken(WordPattern::kO200k)("123 4"), 3U);
  EXPECT_EQ(first_cased_pretoken(WordPattern::kTekken)("123 4"), 1U);
}

TEST(WordScan, GivesEveryByteOfBrokenUtf8ToOnePretoken) {
  for (const Pattern& pattern : patterns()) expect_all_bytes_found(kernels(pattern.pattern));
}

}  // namespace
}  // namespace megalith
