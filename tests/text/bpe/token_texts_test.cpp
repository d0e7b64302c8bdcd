#include "libcore/text/bpe/token_texts.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace megalith
