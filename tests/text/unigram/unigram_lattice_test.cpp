#include "libcore/text/unigram/unigram_lattice.h"

#include <gtest/gtest.h>

#include "libcore/text/unicode/unicode.h"
#include "tests/text/unigram/naive_unigram.h"

namespace megalith {
namespace {

template <class Sum>
void compare_with_naive(UnigramRules::Sums sums, unsigned seed) {
  std::mt19937 random(seed);
  for (int n = 0; n < 200; ++n) {
    const UnigramModel model = test::random_unigram(random, sums);
    const UnigramTables tables = make_tables(model);
    std::vector<std::string> pieces;
    UnigramLattice<Sum> lattice(tables, model.rules.unknown_score,
                                [&](std::string_view piece) { pieces.emplace_back(piece); });
    for (int i = 0; i < 20; ++i) {
      const std::string text = test::random_unigram_text(random);
      const std::vector<std::string> wanted = test::naive_cut<Sum>(model, text);
      const Sum sum = lattice.cut(text, 0);
      ASSERT_EQ(pieces, wanted) << text;
      pieces.clear();
      lattice.begin(0);
      for (std::string_view rest = text; !rest.empty();) {
        const std::string_view some = first_characters(rest, 1 + random() % 9);
        lattice.add(some);
        rest.remove_prefix(some.size());
      }
      ASSERT_EQ(lattice.finish(), sum);
      ASSERT_EQ(pieces, wanted) << text;
      pieces.clear();
    }
  }
}

TEST(UnigramLattice, CutsAsTheReferences) {
  compare_with_naive<float>(UnigramRules::Sums::kFloat, 1);
  compare_with_naive<double>(UnigramRules::Sums::kDouble, 2);
}

UnigramModel model_of(std::vector<std::string> tokens, std::vector<double> scores) {
  UnigramModel model;
  model.tokens = std::move(tokens);
  model.scores = std::move(scores);
  model.rules.unknown_score = -20;
  return model;
}

TEST(UnigramLattice, AddsUpRoundedSums) {
  // The sums of both ways to cut the text are equal, but not if they are rounded to float: then it depends on
  // the sum before it.
  const UnigramModel model = model_of({"66", "6", " "}, {-8.1, -4.05, -3});
  const UnigramTables tables = make_tables(model);
  std::vector<std::string> pieces;
  UnigramLattice<float> lattice(tables, -20, [&](std::string_view piece) { pieces.emplace_back(piece); });
  std::vector<std::vector<std::string>> ways;
  for (float sum = 0; sum > -2000; sum -= 3) {
    lattice.cut("6666", sum);
    ways.push_back(pieces);
    pieces.clear();
  }
  EXPECT_NE(*std::max_element(ways.begin(), ways.end()), *std::min_element(ways.begin(), ways.end()));
}

TEST(UnigramLattice, PassesALongTextOnAsItArrives) {
  const UnigramModel model =
      model_of({"a", "b", "ab", "ba", "aab", "abba"}, {-3.3, -4, -5.1, -5.7, -6.2, -8.5});
  const UnigramTables tables = make_tables(model);
  size_t passed_on = 0, added = 0, most_held = 0;
  UnigramLattice<float> lattice(tables, -20, [&](std::string_view piece) { passed_on += piece.size(); });
  std::mt19937 random(3);
  lattice.begin(0);
  while (added < 5'000'000) {
    std::string bit;
    while (bit.size() < 10'000) bit += random() % 3 == 0 ? "a" : "b";
    lattice.add(bit);
    added += bit.size();
    most_held = std::max(most_held, added - passed_on);
  }
  lattice.finish();
  EXPECT_EQ(passed_on, added);
  EXPECT_LT(most_held, 100'000u);
}

/// Here the ways for an even and an odd number of letters differ from the first letter on.
TEST(UnigramLattice, HoldsALongTextWhoseBeginningDependsOnItsEnd) {
  const UnigramModel model = model_of({"a", "aa"}, {-4, -4});
  const UnigramTables tables = make_tables(model);
  for (const size_t letters : {1'000'000u, 1'000'001u}) {
    std::vector<size_t> pieces;
    UnigramLattice<double> lattice(tables, -20,
                                   [&](std::string_view piece) { pieces.push_back(piece.size()); });
    lattice.begin(0);
    for (size_t left = letters; left > 0;) {
      const size_t some = std::min<size_t>(left, 70'000);
      lattice.add(std::string(some, 'a'));
      left -= some;
    }
    EXPECT_TRUE(pieces.empty());
    lattice.finish();
    std::vector<size_t> wanted(letters / 2, 2);
    if (letters % 2 == 1) wanted.insert(wanted.begin(), 1);
    EXPECT_TRUE(pieces == wanted);
  }
}

}  // namespace
}  // namespace megalith
