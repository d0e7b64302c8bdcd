#include "libcore/text/patterns/compiled_pattern.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"
#include "libcore/hash/sha256.h"
#include "libcore/json/json.h"
#include "libcore/text/pretokenize/split_pattern.h"
#include "libcore/text/unicode/unicode.h"
#include "tests/support/files.h"

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

std::vector<std::string> texts() {
  std::vector<std::string> out;
  const Json list = Json::load(test::test_data("text/goldens/patterns/texts.json"));
  for (const Json& text : list.as_array()) out.push_back(text.as_string());
  return out;
}

/// As tools/golden/make_patterns.py makes them.
std::vector<std::string> code_point_texts() {
  std::vector<std::string> out(1);
  size_t in_text = 0;
  for (uint32_t code = 0; code < 0xE1000; ++code) {
    if ((code >= 0xD800 && code < 0xE000) || (code >= 0x32400 && code < 0xE0000)) continue;
    if (in_text++ == 256) {
      out.emplace_back();
      in_text = 1;
    }
    std::string c;
    append_utf8(c, code);
    out.back() += "a" + c + "1" + c + " " + c + "b" + c + "\n" + c + "!";
  }
  return out;
}

template <class Cut>
std::string digest(const std::vector<std::string>& texts, size_t first, size_t last, const Cut& cut_one) {
  Sha256 hash;
  for (size_t i = first; i < std::min(last, texts.size()); ++i) {
    const std::string pieces = cut_one(texts[i]);
    hash.update(pieces.data(), pieces.size());
  }
  return hash.hex();
}

/// What Oniguruma matches, asked through Hugging Face tokenizers 0.23 (tools/golden/make_patterns.py).
TEST(CompiledPattern, MatchesWhatOnigurumaMatches) {
  constexpr size_t kBlock = 500;
  const std::vector<std::string> all = texts(), code_points = code_point_texts();
  const Json golden = Json::load(test::test_data("text/goldens/patterns/pieces.json"));
  ASSERT_GE(golden.as_array().size() * all.size(), 150'000u);
  for (const Json& row : golden.as_array()) {
    const std::string& regex = row.as_array()[0].as_string();
    const CompiledPattern pattern(regex);
    const FindPretokens find = pretokenizer({split_pattern(regex)});
    const auto here = [&](const std::string& text) { return cut(pattern, text); };
    const auto used = [&](const std::string& text) { return cut(find, text); };
    const auto& blocks = row.as_array()[1].as_array();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t first = i * kBlock;
      EXPECT_EQ(digest(all, first, first + kBlock, here), blocks[i].as_string())
          << regex << " from " << first;
      EXPECT_EQ(digest(all, first, first + kBlock, used), blocks[i].as_string())
          << regex << " from " << first;
    }
    if (row.as_array()[2].is_null()) continue;
    EXPECT_EQ(digest(code_points, 0, SIZE_MAX, here), row.as_array()[2].as_string()) << regex;
    EXPECT_EQ(digest(code_points, 0, SIZE_MAX, used), row.as_array()[2].as_string()) << regex;
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
