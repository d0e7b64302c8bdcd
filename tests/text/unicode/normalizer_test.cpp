#include "libcore/text/unicode/normalizer.h"

#include "tests/text/fixtures.h"

namespace megalith {
namespace {

std::string normalize(std::vector<Normalizer::Step> steps, std::string_view text) {
  Normalizer::Scratch scratch;
  return std::string(Normalizer(std::move(steps)).apply(text, scratch));
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

}  // namespace
}  // namespace megalith
