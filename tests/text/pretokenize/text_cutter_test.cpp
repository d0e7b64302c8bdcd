#include "libcore/text/pretokenize/text_cutter.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/text/formats/hf_stages.h"
#include "libcore/text/pretokenize/character_patterns.h"
#include "tests/support/log_lines.h"
#include "tests/text/pattern_texts.h"

namespace megalith {
namespace {

using Use = SplitStage::Use;

/// The pretokens, each with a byte 0x01 after it.
std::string cut(const TextCutter& cutter, std::string_view text) {
  const CutText made = cutter.cut(text);
  std::string out;
  for_each_pretoken(made.finder(), made.text,
                    [&](std::string_view piece) { out.append(piece).append("\x01"); });
  return out + "\x01";
}

std::string shown(const std::vector<CutStage>& stages, std::string_view text) {
  std::string out = cut(TextCutter(stages), text);
  out.resize(out.size() - 1);
  std::replace(out.begin(), out.end(), '\x01', '|');
  return out;
}

/// The stages of a tokenizer.json, of which a ByteLevel with a blank before the text is not one.
std::vector<CutStage> stages_of(const Json& pre_tokenizer) {
  const std::string file = "tokenizer.json";
  const Json root = Json::Object{{"normalizer", Json()}, {"pre_tokenizer", pre_tokenizer}};
  return read_hf_pretokenizer(JsonCursor(root, file)).stages;
}

/// What Hugging Face tokenizers 0.23 cut, with Oniguruma as their engine (tools/golden/make_patterns.py).
TEST(TextCutter, CutsAsHuggingFace) {
  if (!test::has_oniguruma()) GTEST_SKIP() << test::kNoOniguruma;
  const test::LogLines lines;
  const std::vector<std::string> texts = test::pattern_texts(), code_points = test::code_point_texts();
  const Json golden = Json::load(test::test_data("text/goldens/patterns/cuts.json"));
  ASSERT_GE(golden.as_array().size(), 60u);
  for (const Json& row : golden.as_array()) {
    const TextCutter cutter(stages_of(row.as_array()[0]));
    const auto used = [&](const std::string& text) { return cut(cutter, text); };
    test::expect_digests(texts, used, row.as_array()[1], row.as_array()[0].dump());
    if (row.as_array()[2].is_null()) continue;
    EXPECT_EQ(test::digest(code_points, 0, SIZE_MAX, used), row.as_array()[2].as_string())
        << row.as_array()[0].dump();
  }
}

TEST(TextCutter, SaysThatOnigurumaIsSlower) {
  if (!test::has_oniguruma()) GTEST_SKIP() << test::kNoOniguruma;
  const test::LogLines lines;
  const Json split = Json::Object{{"type", "Split"},
                                  {"pattern", Json::Object{{"Regex", "(?<=a)b"}}},
                                  {"behavior", "Isolated"},
                                  {"invert", false}};
  EXPECT_EQ(shown(stages_of(split), "abbab"), "a|b|ba|b|");
  EXPECT_EQ(lines.lines, std::vector<std::string>{
                             "tokenizer.json: pre_tokenizer.pattern.Regex has the group \"(?<=\": the "
                             "library Oniguruma matches it, slower than a compiled expression"});
}

TEST(TextCutter, LeavesOutWhatAStageRemoves) {
  EXPECT_EQ(shown({SplitStage{.pattern = spaces_pattern(), .use = Use::kRemoved}}, "  ab\u3000c \n"),
            "ab|c|");
  EXPECT_EQ(shown({SplitStage{.pattern = spaces_pattern(), .use = Use::kRemoved}}, " \n"), "");
  EXPECT_EQ(
      shown({SplitStage{.pattern = digits_pattern(true), .use = Use::kRemoved, .invert = true}}, "a12b3"),
      "1|2|3|");
}

TEST(TextCutter, PutsABlankBeforeEachPiece) {
  EXPECT_EQ(shown({SplitStage{digits_pattern(false)}, BlankStage{}}, "a12 b"), " a| 12| b|");
}

// The function that finds pretokens in parts of a text, against the cutter, which sees it as a whole.
TEST(TextCutter, CutsAsPatternsInARowDo) {
  const std::vector<std::vector<SplitPattern>> lists = {
      {digits_pattern(true), gpt2_split_pattern()},
      {digits_pattern(false), punctuation_pattern(false), gpt2_split_pattern(),
       digits_pattern_of_bytes(true)},
      {split_pattern("[\\r\\n]"), split_pattern("\\s?\\p{L}+"), split_pattern("\\s?\\p{P}+"),
       split_pattern("[\u4e00-\u9fa5]+"), digits_pattern(true)},
      {text_pattern("a", TextCut::kAfter), split_pattern("\\s+$"), split_pattern("b+|c")}};
  const char* const parts[] = {"a",  "b",    "word",         " and",   " ",      "   ",
                               "12", "\n",   "\n\n  ",       "'s",     "!",      "...",
                               "\t", "\r\n", "\u4e2d\u6587", "\u00e9", "\u2014", "\u0661"};
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    const size_t size = round % 10 == 0 ? 40'000 : 1 + random() % 600;
    const size_t kinds = 1 + random() % std::size(parts);
    while (text.size() < size) text += parts[random() % kinds];
    for (const std::vector<SplitPattern>& patterns : lists) {
      std::vector<CutStage> stages;
      for (const SplitPattern& pattern : patterns) stages.emplace_back(SplitStage{pattern});
      std::string found;
      for_each_pretoken(pretokenizer(patterns), text,
                        [&](std::string_view piece) { found.append(piece).append("\x01"); });
      ASSERT_TRUE(found + "\x01" == cut(TextCutter(stages), text))
          << patterns.back().name << ' ' << quote(text);
    }
  }
}

TEST(TextCutter, KnowsWhatPatternsInARowCanDo) {
  EXPECT_EQ(plain_patterns({SplitStage{digits_pattern(true)}, SplitStage{punctuation_pattern(true)}})->size(),
            2u);
  EXPECT_FALSE(plain_patterns({BlankStage{}}));
  EXPECT_FALSE(plain_patterns({SplitStage{.pattern = digits_pattern(true), .use = Use::kContiguous}}));
}

TEST(TextCutter, HasANameForEachWayToCut) {
  std::vector<std::string> names = {name_of(BlankStage{}), name_of(SplitStage{digits_pattern(true)})};
  for (const Use use : {Use::kRemoved, Use::kContiguous, Use::kMergedWithPrevious, Use::kMergedWithNext})
    for (const bool invert : {false, true})
      names.push_back(name_of(SplitStage{.pattern = digits_pattern(true), .use = use, .invert = invert}));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << join(names, ", ");
}

}  // namespace
}  // namespace megalith
