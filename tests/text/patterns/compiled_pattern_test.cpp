#include "libcore/text/patterns/compiled_pattern.h"

#include <gtest/gtest.h>

#include "libcore/text/pretokenize/split_pattern.h"
#include "libcore/text/unicode/unicode.h"
#include "tests/text/pattern_texts.h"

namespace megalith {
namespace {

/// The length of the match at the start of a text, by the definition of CompiledPattern::Run.
size_t match(const CompiledPattern& pattern, std::string_view text) {
  CompiledPattern::Run run(pattern);
  size_t last = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.substr(at));
    const auto step = run.step(pattern.class_of(c.value));
    if (step.matched) last = at;
    if (!step.goes_on) return last;
    at += c.bytes;
  }
  return run.matched_at_end() ? text.size() : last;
}

/// The matches and the texts between them, each with a byte 0x01 after it.
std::string cut(const CompiledPattern& pattern, std::string_view text) {
  std::string out, gap;
  const auto end_gap = [&] {
    if (!gap.empty()) out += gap + "\x01";
    gap.clear();
  };
  while (!text.empty()) {
    size_t bytes = match(pattern, text);
    if (bytes > 0) {
      end_gap();
      out.append(text.substr(0, bytes)).append("\x01");
    } else {
      bytes = code_point_at(text).bytes;
      gap += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  end_gap();
  return out + "\x01";
}

std::string cut(const FindPretokens& find, std::string_view text) {
  std::string out;
  for_each_pretoken(find, text, [&](std::string_view piece) { out.append(piece).append("\x01"); });
  return out + "\x01";
}

/// What Oniguruma matches, asked through Hugging Face tokenizers 0.23 (tools/golden/make_patterns.py).
TEST(CompiledPattern, MatchesWhatOnigurumaMatches) {
  const std::vector<std::string> all = test::pattern_texts(), code_points = test::code_point_texts();
  const Json golden = Json::load(test::test_data("text/goldens/patterns/pieces.json"));
  ASSERT_GE(golden.as_array().size() * all.size(), 150'000u);
  for (const Json& row : golden.as_array()) {
    const std::string& regex = row.as_array()[0].as_string();
    const CompiledPattern pattern(regex);
    const FindPretokens find = pretokenizer({split_pattern(regex)});
    const auto here = [&](const std::string& text) { return cut(pattern, text); };
    const auto used = [&](const std::string& text) { return cut(find, text); };
    test::expect_digests(all, here, row.as_array()[1], regex);
    test::expect_digests(all, used, row.as_array()[1], regex);
    if (row.as_array()[2].is_null()) continue;
    EXPECT_EQ(test::digest(code_points, 0, SIZE_MAX, here), row.as_array()[2].as_string()) << regex;
    EXPECT_EQ(test::digest(code_points, 0, SIZE_MAX, used), row.as_array()[2].as_string()) << regex;
  }
}

TEST(CompiledPattern, KnowsWhetherItsMatchesCoverEveryText) {
  for (const char* regex : {R"([^\n]+|[\n]+)", R"(\w+|\W)", R"(\s+(?!\S)|\s+|\S)", R"(a*b|a|[^a])"})
    EXPECT_TRUE(CompiledPattern(regex).covers_texts()) << regex;
  for (const char* regex : {"a", R"(\S+|\s+$)", "a*b|[^a]", R"(\s+(?!\S)|\S)", "ab|a(?=c)|[^a]"})
    EXPECT_FALSE(CompiledPattern(regex).covers_texts()) << regex;
}

TEST(CompiledPattern, RefusesTooLargeATable) {
  for (const char* regex : {"(?:a{1000}){1000}", "(?:.{0,2000}a){9}", "(?:a|b)*a(?:a|b){14}"})
    EXPECT_THROW(CompiledPattern{regex}, UnsupportedPattern) << regex;
}

}  // namespace
}  // namespace megalith
