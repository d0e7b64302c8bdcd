#include "libcore/text/patterns/oniguruma.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "tests/text/pattern_texts.h"

namespace megalith {
namespace {

using Matches = std::vector<std::pair<size_t, size_t>>;

class Oniguruma : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_oniguruma()) GTEST_SKIP() << test::kNoOniguruma;
  }
  static Matches matches(std::string_view regex, std::string_view text) {
    Matches found;
    oniguruma_pattern(regex)->each_match(text,
                                         [&](size_t begin, size_t end) { found.emplace_back(begin, end); });
    return found;
  }
};

TEST_F(Oniguruma, FindsMatchesOneAfterTheOther) {
  EXPECT_EQ(matches("(?<=a)b", "abbab"), (Matches{{1, 2}, {4, 5}}));
  EXPECT_EQ(matches("b|(?=c)", "abcéc"), (Matches{{1, 2}, {5, 5}}));
  EXPECT_EQ(matches("", "é"), (Matches{{0, 0}, {2, 2}}));
  EXPECT_EQ(matches("a", ""), Matches());
}

TEST_F(Oniguruma, KnowsTheCharactersOfTheReferencesUnicode) {
  // Unicode 16.0 has the letter U+1C89; the library of Debian 12 knows Unicode 14.0.
  EXPECT_EQ(matches("\\p{Lu}(?<=.)", "\u1C89"), (Matches{{0, 3}}));
  EXPECT_EQ(matches("\\b", "\u1C89"), (Matches{{0, 0}, {3, 3}}));
}

TEST_F(Oniguruma, RefusesWhatTheLibraryRefuses) {
  for (const char* regex : {"(?<=a", "[", "\\p{Nothing}", "(?<x>a)\\k<y>"})
    EXPECT_THROW(oniguruma_pattern(regex), UnsupportedPattern) << regex;
}

TEST_F(Oniguruma, GivesUpOnTooManySteps) {
  try {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "ab";
    matches("(?:a|b|ab)*(?<=b)c", text + "xc");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("retry-limit"), std::string::npos) << error.what();
  }
}

TEST(OnigurumaPlugin, WithoutItThePackageIsNamed) {
  const test::TempDir empty;
  try {
    oniguruma_pattern("a", {empty.path().string()});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(std::string(error.what()).find("install the package libonig-dev"), std::string::npos)
        << error.what();
  }
}

TEST(OwnProperties, ReplaceThoseOfTheLibrary) {
  EXPECT_EQ(with_own_properties("a\\p{Zl}b"), "a(?-i:[\\x{002028}])b");
  EXPECT_EQ(with_own_properties("[^\\p{Zs}\\P{^zp}]").substr(0, 12), "[^[\\x{000020");
  EXPECT_EQ(with_own_properties("[\\p{Zl}\\p{^Zl}]"),
            "[[\\x{002028}][\\x{000000}-\\x{002027}\\x{002029}-\\x{10ffff}]]");
  EXPECT_NE(with_own_properties("\\b").find("(?<="), std::string::npos);
}

TEST(OwnProperties, DoNotFillTheMemory) {
  std::string regex;
  for (int i = 0; i < 100'000; ++i) regex += "\\b";
  EXPECT_THROW(with_own_properties(regex), UnsupportedPattern);
}

TEST(OwnProperties, LeaveTheRestAsItIs) {
  for (const char* regex : {"[\\b[:alpha:]]\\p{Nothing}", "(?x)\\w", "(?imW:\\b)", "[]\\d]", "(?#\\d)a",
                            "\\\\d", "\\s\\h\\R", "\\cd", "(?<name>a)\\k<name>", "[^]\\w]", "\\p"})
    EXPECT_EQ(with_own_properties(regex), regex);
}

}  // namespace
}  // namespace megalith
