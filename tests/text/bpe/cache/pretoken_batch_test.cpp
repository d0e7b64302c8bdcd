#include "libcore/text/bpe/cache/pretoken_batch.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/text/bpe/random_vocabulary.h"

namespace megalith {
namespace {

/// A text of words in several scripts; some texts are empty or have as many bytes as a batch takes.
std::string some_text(std::mt19937& random) {
  const size_t most = random() % 50 == 0 ? PretokenBatch::kLongestText : random() % 100;
  std::string text;
  while (true) {
    const std::string& letter = test::kFewLetters[random() % test::kFewLetters.size()];
    if (text.size() + letter.size() > most) return text;
    text += letter;
  }
}

/// Puts random texts and ids into a batch, and compares what it appends with what the rules give for each
/// pretoken.
void equals_the_rules(size_t first_id, bool cut_in_parts) {
  std::mt19937 random(7);
  test::MergedVocabulary vocabulary(first_id);
  vocabulary.add_random(test::kFewLetters, 150, random);
  const PieceRules rules{.cut_in_parts = cut_in_parts,
                         .wide = first_id > 0,
                         .encoder = {vocabulary.bytes, vocabulary.merges},
                         .borders = {vocabulary.tokens, vocabulary.merges},
                         .whole = {}};
  TokenCache memory({.table_bits = 8, .long_bytes = 16384}, rules.wide);
  CachedEncoder encoder(rules, memory);
  const FindPretokens find = pretokenizer(PretokenPattern::kGpt2);
  IdBuffer out(sizeof(int32_t));
  PretokenBatch batch(encoder, out);
  std::vector<int32_t> wanted, piece;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 3 == 0) {
      const std::string text = some_text(random);
      batch.add(text, find);
      for_each_pretoken(find, text, [&](std::string_view pretoken) {
        rules.encode(pretoken, piece);
        wanted.insert(wanted.end(), piece.begin(), piece.end());
      });
    } else if (random() % 200 == 0) {
      batch.flush();
      ASSERT_EQ(out.ids(), wanted);
    } else {
      const std::vector<int32_t> ids(random() % 3, random() % 2 == 0 ? -1 : i);
      batch.put(ids);
      wanted.insert(wanted.end(), ids.begin(), ids.end());
    }
  }
  batch.flush();
  EXPECT_EQ(out.ids(), wanted);
}

TEST(PretokenBatch, GivesTheIdsOfEachTextAndWhatIsBetweenThem) {
  equals_the_rules(0, true);
  equals_the_rules(70'000, true);
  equals_the_rules(0, false);
}

TEST(PretokenBatch, AppendsIdsWithoutATextToo) {
  const test::MergedVocabulary vocabulary;
  const PieceRules rules{.cut_in_parts = true,
                         .wide = false,
                         .encoder = {vocabulary.bytes, vocabulary.merges},
                         .borders = {vocabulary.tokens, vocabulary.merges},
                         .whole = {}};
  TokenCache memory({.table_bits = 8, .long_bytes = 16384}, rules.wide);
  CachedEncoder encoder(rules, memory);
  IdBuffer out(sizeof(int32_t));
  PretokenBatch batch(encoder, out);
  batch.put(std::vector<int32_t>{-1, 3});
  batch.add("", pretokenizer(PretokenPattern::kGpt2));
  batch.flush();
  batch.flush();
  std::vector<int32_t> wanted = {-1, 3};
  EXPECT_EQ(out.ids(), wanted);
  const std::vector<int32_t> many(100'000, 5);
  batch.put(many);
  EXPECT_GT(out.size(), many.size() * 9 / 10) << "a batch keeps few ids";
  batch.flush();
  wanted.insert(wanted.end(), many.begin(), many.end());
  EXPECT_EQ(out.ids(), wanted);
}

}  // namespace
}  // namespace megalith
