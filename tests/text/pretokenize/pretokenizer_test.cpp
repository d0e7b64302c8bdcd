#include "libcore/text/pretokenize/pretokenizer.h"

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::vector<std::string> pretokens(std::string_view text) {
  std::vector<std::string> out;
  for_each_pretoken(find_one_by_one<gpt2_pretoken>, text,
                    [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}

using Pieces = std::vector<std::string>;

TEST(Gpt2Pretoken, FollowsThePatternsAlternativesInOrder) {
  EXPECT_EQ(pretokens("I've  gone\n\n to 12 o'clock!!"),
            (Pieces{"I", "'ve", " ", " gone", "\n\n", " to", " 12", " o", "'", "clock", "!!"}));
  EXPECT_EQ(pretokens("'sam 's ''s"), (Pieces{"'s", "am", " '", "s", " ''", "s"}));
  EXPECT_EQ(pretokens("a \t b"), (Pieces{"a", " \t", " b"}));
  EXPECT_EQ(pretokens("a \t "), (Pieces{"a", " \t "}));
  EXPECT_EQ(pretokens("a\tb"), (Pieces{"a", "\t", "b"}));
  EXPECT_EQ(pretokens("\xC2\xA0x"), (Pieces{"\xC2\xA0", "x"}));  // only U+0020 joins a word
  EXPECT_EQ(pretokens(""), Pieces{});
}

TEST(Gpt2Pretoken, IsThatOfHuggingFace) {
  const Json golden = Json::load(test::test_data("text/goldens/pretokens.json"));
  ASSERT_GT(golden.as_array().size(), 250u);
  for (const Json& entry : golden.as_array()) {
    const std::string& text = entry.as_array()[0].as_string();
    Json found = Json::array();
    for (const std::string& piece : pretokens(text))
      found.push_back(Json(static_cast<int64_t>(piece.size())));
    EXPECT_EQ(found, entry.as_array()[1]) << quote(text);
  }
}

TEST(Gpt2Pretoken, StaysInsideBrokenUtf8) {
  // Each in a heap block of exactly its size, so that the address sanitizer detects a byte read too far.
  for (const char* text :
       {"\xF0\x9F\x98", "a\xE2\x82", " \xC3", "\xC3", "'\xF0", " ", "'", "'l", "\xFF\xFE", "\xE2\x80"}) {
    const std::vector<char> bytes(text, text + std::char_traits<char>::length(text));
    std::string joined;
    for (const std::string& piece : pretokens({bytes.data(), bytes.size()})) joined += piece;
    EXPECT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace megalith
