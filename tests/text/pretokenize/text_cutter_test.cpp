#include "libcore/text/pretokenize/text_cutter.h"

#include <algorithm>

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
