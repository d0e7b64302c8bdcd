#include "libcore/text/unicode/normalizer_bits.h"

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
      Normalizer({N::Nmt{}, N::Nfkc{}, N::Replace{" ", "\u2581"}, N::Prepend{"x"}}),
  };
}

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kKinds = {"a",       "B",      "7",      " ",     " ",  "  ",
                                                  "e\u0301", "\u0301", "\ufb01", "`",     "``", "\r\n",
                                                  "\t",      "\u3000", "\u65e5", "\u200b"};
  std::string text;
  for (size_t n = random() % 200; n > 0; --n) text += kKinds[random() % kKinds.size()];
  return text;
}

TEST(NormalizerBits, GiveTheTextThatIsNormalizedAtOnce) {
  std::mt19937 random(1);
  for (const Normalizer& whole : normalizers()) {
    const auto bits = NormalizerBits::of(whole);
    ASSERT_TRUE(bits);
    size_t most_bits = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::string text = random_text(random);
      Normalizer::Scratch scratch;
      const std::string wanted(whole.apply(text, scratch));
      std::string found;
      size_t count = 0;
      for (std::string_view rest = text; !rest.empty(); ++count) {
        const std::string_view bit = bits->next(rest, 20);
        rest.remove_prefix(bit.size());
        found += bits->normalizer(count == 0, rest.empty()).apply(bit, scratch);
      }
      ASSERT_EQ(found, wanted) << text;
      most_bits = std::max(most_bits, count);
    }
    EXPECT_GT(most_bits, 3u);
  }
}

TEST(NormalizerBits, AreNoneIfWordsOrBlanksAreReplacedWithOthers) {
  EXPECT_FALSE(NormalizerBits::of(Normalizer({N::Replace{"a b", "c"}})));
  EXPECT_FALSE(NormalizerBits::of(Normalizer({N::Replace{"the", ""}})));
  EXPECT_FALSE(NormalizerBits::of(Normalizer({N::Replace{" ", "\u0301"}, N::Nfc{}})));
  EXPECT_TRUE(NormalizerBits::of(Normalizer({N::Replace{" ", "\u2581"}, N::Nfc{}})));
}

}  // namespace
}  // namespace megalith
