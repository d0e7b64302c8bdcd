#include "libcore/text/bpe/cache/cached_encoder.h"

#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/machine/isa.h"
#include "libcore/text/pretokenize/pretokenizer.h"
#include "tests/support/environment.h"
#include "tests/text/bpe/random_vocabulary.h"

namespace megalith {
namespace {

/// A random vocabulary; its ids need more than 16 bits if `wide`.
test::MergedVocabulary make_vocabulary(bool wide) {
  test::MergedVocabulary vocabulary(wide ? 70'000 : 0);
  std::mt19937 random(3);
  vocabulary.add_random(test::kFewLetters, 150, random);
  return vocabulary;
}

/// Which tokens are whole pretokens: none, each that is a multiple of this, or all.
enum Whole : size_t { kNoWhole = SIZE_MAX, kFewWhole = 17, kAllWhole = 1 };

PieceRules make_rules(const test::MergedVocabulary& vocabulary, Whole whole) {
  const auto& [tokens, merges, bytes] = vocabulary;
  PieceRules rules{.cut_in_parts = true,
                   .wide = tokens.size() > 65536,
                   .encoder = {bytes, merges},
                   .borders = {tokens, merges},
                   .whole = {}};
  for (size_t id = 0; id < tokens.size(); ++id)
    if (!tokens[id].empty() && (id + 1) % whole == 0)
      rules.whole.emplace(tokens[id], static_cast<int32_t>(id));
  return rules;
}

/// Words in several scripts, some of them frequent, with runs of NUL.
std::string random_text(std::mt19937& random) {
  std::string text;
  for (size_t words = random() % 300; words > 0; --words) {
    std::mt19937 word(random() % (random() % 2 == 0 ? 20 : 3000));
    for (size_t n = 1 + word() % (word() % 8 == 0 ? 30 : 7); n > 0; --n)
      text += test::kFewLetters[word() % test::kFewLetters.size()];
    if (word() % 50 == 0) text.append(word() % 40, '\0');
  }
  return text;
}

struct Case {
  bool wide;
  Whole whole;
  TokenCache::Size size;
  size_t threads = 1;
};

/// Encodes random texts and compares their ids with those of `rules`; other threads may encode at the same
/// time.
template <class Id>
void equals_the_rules(const PieceRules& rules, TokenCache& memory, int rounds, unsigned seed) {
  CachedEncoder encoder(rules, memory);
  const FindPretokens find = pretokenizer(PretokenPattern::kGpt2);
  std::mt19937 random(seed);
  std::vector<int32_t> piece;
  std::array<uint32_t, 1000> ends;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = random_text(random);
    IdBuffer ids(sizeof(Id));
    std::vector<int32_t> wanted;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t count = find(rest, ends);
      encoder.encode(rest, std::span(ends).first(count), ids);
      for (size_t i = 0, begin = 0; i < count; begin = ends[i++]) {
        rules.encode(rest.substr(begin, ends[i] - begin), piece);
        wanted.insert(wanted.end(), piece.begin(), piece.end());
      }
      rest.remove_prefix(ends[count - 1]);
    }
    ASSERT_EQ(ids.ids(), wanted) << text;
  }
}

template <class Id>
void equals_the_rules(const Case& c) {
  const test::MergedVocabulary vocabulary = make_vocabulary(c.wide);
  const PieceRules rules = make_rules(vocabulary, c.whole);
  TokenCache memory(c.size, rules.wide);
  const int rounds = 150 / static_cast<int>(c.threads);
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < c.threads; ++i)
    threads.emplace_back([&, i] { equals_the_rules<Id>(rules, memory, rounds, 4 + i); });
  equals_the_rules<Id>(rules, memory, rounds, 4);
}

class CachedEncoderIsa : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, CachedEncoderIsa, testing::Values(Isa::kGeneric, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& isa) { return std::string(name(isa.param)); });

// The cache sizes range from a table of four entries and room for a few long pieces, which is always too
// small, to enough for all. Encodes in one thread, then in several that share the cache.
TEST_P(CachedEncoderIsa, GivesTheIdsOfTheRulesWhateverItsMemory) {
  if (best_isa() < GetParam()) GTEST_SKIP() << "not on this processor";
  const test::Variable chosen("MEGALITH_ISA", name(GetParam()));
  for (const TokenCache::Size size : {TokenCache::Size{.table_bits = 1, .long_bytes = 8192},
                                      TokenCache::Size{.table_bits = 5, .long_bytes = 16384},
                                      TokenCache::Size{.table_bits = 14, .long_bytes = 1 << 20}})
    for (const Whole whole : {kNoWhole, kFewWhole, kAllWhole})
      for (const size_t threads : {1, 3}) {
        equals_the_rules<uint16_t>({.wide = false, .whole = whole, .size = size, .threads = threads});
        equals_the_rules<int32_t>({.wide = false, .whole = whole, .size = size, .threads = threads});
        equals_the_rules<int32_t>({.wide = true, .whole = whole, .size = size, .threads = threads});
      }
}

TEST(CachedEncoder, RefusesIdsThatDoNotFit) {
  const test::MergedVocabulary vocabulary = make_vocabulary(true);
  const PieceRules rules = make_rules(vocabulary, kNoWhole);
  TokenCache memory({.table_bits = 5, .long_bytes = 16384}, rules.wide);
  CachedEncoder encoder(rules, memory);
  IdBuffer ids(2);
  const std::array<uint32_t, 1> ends = {1};
  EXPECT_ANY_THROW(encoder.encode("a", ends, ids));
}

}  // namespace
}  // namespace megalith
