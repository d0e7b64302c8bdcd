#include "libcore/text/unicode/stream_normalizer.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/text/unicode/precompiled.h"

namespace megalith {
namespace {

using N = Normalizer;

std::vector<Normalizer> normalizers() {
  const N::Precompiled precompiled = test::precompiled("sentencepiece/nmt_nfkc_cf.model");
  return {
      Normalizer({N::Prepend{"_"}, N::Replace{" ", "_"}}),
      Normalizer({N::Strip{true, true}, precompiled, N::JoinBlanks{" "}}),
      Normalizer({precompiled, N::Strip{false, true}, N::JoinBlanks{"\u2581"}}),
      Normalizer(
          {N::Replace{"``", "\""}, N::Decompose{Decomposition::kNfkd}, N::StripAccents{}, N::Lowercase{}}),
      Normalizer({BertNormal({})}),
      Normalizer({N::Nmt{}, N::Nfkc{}, N::Replace{" ", "\u2581"}, N::Prepend{"x"}}),
  };
}

TEST(StreamNormalizer, DoesNotCutWhereAnExpressionMayMatch) {
  const N::ReplaceMatches matches{"x", "y", [](std::string_view, const auto&) {}};
  EXPECT_FALSE(StreamNormalizer::of(Normalizer({N::Prepend{"_"}, matches})));
}

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kKinds = {"a",       "B",      "7",      " ",     " ",  "  ",
                                                  "e\u0301", "\u0301", "\ufb01", "`",     "``", "\r\n",
                                                  "\t",      "\u3000", "\u65e5", "\u200b"};
  std::string text;
  for (size_t n = random() % 200; n > 0; --n) text += kKinds[random() % kKinds.size()];
  return text;
}

TEST(StreamNormalizer, GivesTheTextThatIsNormalizedAtOnce) {
  std::mt19937 random(1);
  for (const Normalizer& whole : normalizers()) {
    const auto normalizer = StreamNormalizer::of(whole);
    ASSERT_TRUE(normalizer);
    size_t most_parts = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::string text = random_text(random);
      Normalizer::Scratch scratch;
      const std::string wanted(whole.apply(text, scratch));
      std::string found;
      size_t count = 0;
      for (std::string_view rest = text; !rest.empty(); ++count) {
        const std::string_view part = normalizer->next(rest, 20);
        rest.remove_prefix(part.size());
        found += normalizer->normalizer(count == 0, rest.empty()).apply(part, scratch);
      }
      ASSERT_EQ(found, wanted) << text;
      most_parts = std::max(most_parts, count);
    }
    EXPECT_GT(most_parts, 3u);
  }
}

TEST(StreamNormalizer, IsNoneIfWordsOrBlanksAreReplacedWithOthers) {
  EXPECT_FALSE(StreamNormalizer::of(Normalizer({N::Replace{"a b", "c"}})));
  EXPECT_FALSE(StreamNormalizer::of(Normalizer({N::Replace{"the", ""}})));
  EXPECT_FALSE(StreamNormalizer::of(Normalizer({N::Replace{" ", "\u0301"}, N::Nfc{}})));
  EXPECT_TRUE(StreamNormalizer::of(Normalizer({N::Replace{" ", "\u2581"}, N::Nfc{}})));
}

}  // namespace
}  // namespace megalith
