#include "libcore/text/bpe/token_texts.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(TokenTexts, GiveEachTextAndWhatItWasChangedTo) {
  TokenTexts texts({"ab", "", "c"});
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[0], "ab");
  EXPECT_EQ(texts[1], "");
  EXPECT_EQ(texts[2], "c");
  const TokenTexts before = texts;
  texts.change(1, "long");
  EXPECT_EQ(texts[1], "long");
  EXPECT_EQ(texts[2], "c");
  EXPECT_EQ(before[1], "");
  EXPECT_EQ(TokenTexts(texts.bytes(), texts.ends())[1], "") << "as they were made";
}

TEST(TokenTexts, FitWhenEachTextLiesInTheBytes) {
  const SharedArray<char> bytes(std::vector<char>{'a', 'b', 'c'});
  const auto fit = [&](std::vector<uint32_t> ends) {
    return TokenTexts::fit(bytes, SharedArray(std::move(ends)));
  };
  EXPECT_TRUE(fit({1, 1, 3}));
  EXPECT_FALSE(fit({1, 1, 2}));
  EXPECT_FALSE(fit({1, 1, 4}));
  EXPECT_FALSE(fit({4, 1, 3}));
  EXPECT_FALSE(fit({}));
  EXPECT_TRUE(TokenTexts::fit({}, {}));
}

std::string joined(const TokenTexts& texts, const std::vector<int32_t>& ids) {
  ByteBuffer out;
  out.append("x", 1);
  append_texts(texts, ids, out);
  return {out.data(), out.size()};
}

TEST(TokenTexts, AreAppendedWithALineEndForEachEnd) {
  const std::string sixteen(16, 's'), longer(40, 'l');
  TokenTexts texts({"ab", longer, "", sixteen, "c"});
  EXPECT_EQ(joined(texts, {}), "x");
  EXPECT_EQ(joined(texts, {0, 4, -1, -1, 3, 2, 1, 0}), "xabc\n\n" + sixteen + longer + "ab");
  texts.change(4, "changed");
  EXPECT_EQ(joined(texts, {4, 3, 4}), "xchanged" + sixteen + "changed");
  EXPECT_EQ(joined(TokenTexts({"a", "bc"}), {1, 0, 1}), "xbcabc");  // too few bytes to copy sixteen
  EXPECT_EQ(joined(TokenTexts({"", ""}), {1, -1, 0}), "x\n");       // no bytes at all
  ByteBuffer out;
  for (const int32_t id : {5, -2}) EXPECT_THROW(append_texts(texts, std::vector<int32_t>{0, id}, out), Error);
  EXPECT_EQ(out.size(), 0U);
}

}  // namespace
}  // namespace megalith
