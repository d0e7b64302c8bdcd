#include "libcore/text/unicode/normalizer.h"

#include "libcore/base/utf8.h"
#include "libcore/hash/sha256.h"
#include "libcore/text/pretokenize/oniguruma_split.h"
#include "libcore/text/pretokenize/split_pattern.h"
#include "tests/text/fixtures.h"
#include "tests/text/pattern_texts.h"
#include "tests/text/unicode/precompiled.h"

namespace megalith {
namespace {

std::string normalize(std::vector<Normalizer::Step> steps, std::string_view text) {
  Normalizer::Scratch scratch;
  return std::string(Normalizer(std::move(steps)).apply(text, scratch));
}

Normalizer::ReplaceMatches replaced(SplitPattern pattern, const std::string& to) {
  return {pattern.name, to, matches_of(std::move(pattern))};
}

TEST(Normalizer, GoesThroughItsStepsInOrder) {
  using N = Normalizer;
  EXPECT_EQ(normalize({}, "a b"), "a b");
  EXPECT_EQ(normalize({N::Prepend{"_"}, N::Replace{" ", "_"}}, "a b "), "_a_b_");
  EXPECT_EQ(normalize({N::Replace{" ", "_"}, N::Prepend{" "}}, "a b "), " a_b_");
  EXPECT_EQ(normalize({N::Replace{"aa", "b"}, N::Replace{"b", "aa"}}, "aaa"), "aaa");
  EXPECT_EQ(normalize({N::Nfc{}, N::Replace{"\u00e9", "e"}}, "e\u0301"), "e");
  EXPECT_EQ(normalize({N::Prepend{"_"}}, ""), "");
}

TEST(Normalizer, RefusesToFillTheMemory) {
  std::vector<Normalizer::Step> steps;
  for (int i = 0; i < 32; ++i) steps.emplace_back(Normalizer::Replace{"a", "aa"});
  test::expect_error(ErrorKind::kData, {"normalizer", "bytes of a text of 3"},
                     [&] { normalize(steps, "bab"); });
  const std::string huge(size_t{1} << 20, 'b');
  test::expect_error(ErrorKind::kData, {"normalizer"}, [&] {
    normalize({Normalizer::Replace{"a", huge}}, std::string(100000, 'a'));
  });
}

// The texts are what tokenizers 0.23.3 makes.
TEST(Normalizer, ReplacesMatchesOfAnExpression) {
  const auto digits = replaced(split_pattern("[0-9]+"), "7");
  EXPECT_EQ(normalize({digits}, "12 a3 b"), "7 a7 b");
  EXPECT_EQ(normalize({digits}, "none"), "none");
  EXPECT_EQ(normalize({digits, Normalizer::Replace{"7", ""}}, "12"), "");
  const auto empty = replaced({.name = "at 0 and 1",
                               .match = {},
                               .find_all =
                                   [](std::string_view, const auto& take) {
                                     take(0, 0);
                                     take(1, 1);
                                   }},
                              "_");
  EXPECT_EQ(normalize({empty}, "ab"), "_a_b");
  EXPECT_EQ(normalize({empty}, ""), "");
  test::expect_error(ErrorKind::kData, {"normalizer"}, [&] {
    normalize({replaced(split_pattern("[0-9]"), std::string(size_t{1} << 20, 'x'))},
              std::string(100'000, '1'));
  });
}

TEST(Normalizer, StripsAndJoinsBlanks) {
  using N = Normalizer;
  EXPECT_EQ(normalize({N::Strip{true, true}}, " \u3000a b\n"), "a b");
  EXPECT_EQ(normalize({N::Strip{false, true}, N::Replace{" ", "_"}}, " a \u2003"), "_a");
  EXPECT_EQ(normalize({N::Replace{"a", "b"}, N::Strip{true, false}}, "  aa"), "bb");
  EXPECT_EQ(normalize({N::Strip{true, true}}, " \t"), "");
  EXPECT_EQ(normalize({N::JoinBlanks{"_"}}, "  a b   c  "), "_a b_c_");
}

TEST(Normalizer, ReplacesAClusterByTheFirstRuleThatFitsItsBeginning) {
  const Normalizer::Precompiled step = test::precompiled("unigram/rules.model");
  EXPECT_EQ(normalize({step}, "\ufb01x"), "fix");
  EXPECT_EQ(normalize({step}, "\ufb01\u0301x"), "fix");                    // the mark is in the cluster
  EXPECT_EQ(normalize({step}, "\ufb01\u0301\u0301x"), "fi\u0301\u0301x");  // a cluster of seven bytes
  EXPECT_EQ(normalize({step}, "a\r\nb"), "a b");
  EXPECT_EQ(normalize({step}, "e\u0301"), "\u00e9");
}

/// What Hugging Face tokenizers make of texts with every code point that may be assigned
/// (tools/golden/make_normalizers.py).
TEST(Normalizer, IsThatOfHuggingFaceForEveryCodePoint) {
  using N = Normalizer;
  std::vector<std::pair<const char*, N::Step>> steps = {
      {"NFC", N::Nfc{}},
      {"NFD", N::Decompose{Decomposition::kNfd}},
      {"NFKC", N::Nfkc{}},
      {"NFKD", N::Decompose{Decomposition::kNfkd}},
      {"StripAccents", N::StripAccents{}},
      {"Lowercase", N::Lowercase{}},
      {"Nmt", N::Nmt{}},
      {"Strip", N::Strip{true, true}},
      {"StripRight", N::Strip{false, true}},
      {"JoinBlanks", N::JoinBlanks{"_"}},
      {"Bert", BertNormal({})},
      {"BertCased", BertNormal({.strip_accents = false, .lower = false})},
      {"BertAccents", BertNormal({.clean = false, .space_ideographs = false, .lower = false})},
      {"Precompiled", test::precompiled("sentencepiece/nmt_nfkc_cf.model")},
      {"ReplaceCompiled", replaced(split_pattern("\\p{N}+|[\\p{Lu}&&\\p{Greek}]"), "<n>")},
  };
  if (test::has_oniguruma())
    steps.emplace_back("ReplaceOniguruma", replaced(oniguruma_split_pattern("(?<=a)\\p{M}|(?=e)|\\s$"), "~"));
  const Json golden = Json::load(test::test_data("text/goldens/normalizers.json"));
  for (const auto& [name, step] : steps) {
    const Normalizer normalizer({step});
    Normalizer::Scratch scratch;
    Sha256 hash;
    for (uint32_t code = 0; code < 0xE1000; ++code) {
      if ((code >= 0xD800 && code < 0xE000) || (code >= 0x32400 && code < 0xE0000)) continue;
      std::string c;
      append_utf8(c, code);
      const std::string texts[] = {c,
                                   "a" + c + "\u0301",
                                   "a\u0323" + c + "\u0301" + c,
                                   c + "\u1161\u11a8" + c,
                                   " " + c + "\u200d\u00a9",
                                   "\u0600" + c + "  " + c + "e\u0301"};
      for (const std::string& text : texts) {
        const std::string_view normal = normalizer.apply(text, scratch);
        hash.update(normal.data(), normal.size());
        hash.update("\n", 1);
      }
    }
    EXPECT_EQ(hash.hex(), golden[name].as_string()) << name;
  }
}

}  // namespace
}  // namespace megalith
