#include "libcore/text/bpe/merge_borders.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/text/bpe/random_vocabulary.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

TEST(MergeBorders, PartWhereNoMergeReachesAcross) {
  test::MergedVocabulary m;
  const int32_t ri = m.add(m.add(0xE6, 0x97), 0xA5);   // 日
  const int32_t ben = m.add(m.add(0xE6, 0x9C), 0xAC);  // 本
  m.add(ri, ben);
  const MergeBorders borders(m.tokens, m.merges);
  const std::string text = "\xE6\x97\xA5\xE6\x9C\xAC\xE6\x97\xA5";  // 日本日
  EXPECT_FALSE(borders.parts(text, 3));
  EXPECT_TRUE(borders.parts(text, 6));
  for (size_t inside : {1, 2, 4, 5, 7, 8}) EXPECT_FALSE(borders.parts(text, inside));
  EXPECT_FALSE(borders.parts("ab", 1));
}

TEST(MergeBorders, EncodeTheSameInParts) {
  std::mt19937 random(7);
  size_t cuts = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::string> letters = {
        "\xE6\x97\xA5", "\xE6\x97\xA6", "\xE3\x82\xA5", "\xD0\xBF", "\xD0\xBE", "a", "\xF0\x9F\x98\x80"};
    test::MergedVocabulary m;
    m.add_random(letters, 40, random);
    const MergeBorders borders(m.tokens, m.merges);
    const BytePairEncoder encoder(m.bytes, m.merges);
    for (int texts = 0; texts < 50; ++texts) {
      std::string text;
      for (size_t n = 1 + random() % 12; n > 0; --n) text += letters[random() % letters.size()];
      std::vector<int32_t> whole, joined, part;
      encoder.encode(text, whole);
      size_t begin = 0;
      for (size_t at = 1; at <= text.size(); ++at)
        if (at == text.size() || borders.parts(text, at)) {
          encoder.encode(std::string_view(text).substr(begin, at - begin), part);
          joined.insert(joined.end(), part.begin(), part.end());
          cuts += at < text.size();
          begin = at;
        }
      ASSERT_EQ(joined, whole) << quote(text);
    }
  }
  EXPECT_GT(cuts, 1000U);
}

TEST(MergeBorders, DoubtWhereverTheyJoin) {
  std::mt19937 random(6);
  test::MergedVocabulary vocabulary;
  vocabulary.add_random(test::kFewLetters, 60, random);
  const MergeBorders borders(vocabulary.tokens, vocabulary.merges);
  size_t joined = 0, sure = 0;
  for (int round = 0; round < 800; ++round) {
    std::string text;
    for (size_t n = 1 + random() % 100; n > 0; --n)
      text += test::kFewLetters[random() % test::kFewLetters.size()];
    for (size_t at = 1; at < text.size(); ++at) {
      const auto lead = static_cast<uint8_t>(text[at]);
      if (lead < 0xC0) continue;
      const bool doubt = borders.doubts()[static_cast<uint8_t>(text[at - 1])] >> (lead % 8) & 1;
      sure += !doubt;
      joined += borders.joins(text, at);
      ASSERT_TRUE(doubt || !borders.joins(text, at)) << quote(text) << " at " << at;
    }
  }
  EXPECT_GT(joined, 1000U);
  EXPECT_GT(sure, 1000U);
}

}  // namespace
}  // namespace megalith
