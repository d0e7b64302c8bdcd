#include "libcore/data/preprocess/content_set.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

ContentHash hash_of(std::vector<std::string_view> texts) {
  return content_hash(texts);
}

TEST(ContentHash, TellsHowTextsAreSplit) {
  const std::vector<ContentHash> hashes = {hash_of({}),         hash_of({""}),       hash_of({"", ""}),
                                           hash_of({"ab"}),     hash_of({"a", "b"}), hash_of({"b", "a"}),
                                           hash_of({"ab", ""}), hash_of({"", "ab"})};
  for (size_t i = 0; i < hashes.size(); ++i)
    for (size_t j = 0; j < hashes.size(); ++j) {
      EXPECT_EQ(hashes[i].high == hashes[j].high, i == j);
      EXPECT_EQ(hashes[i].low == hashes[j].low, i == j);
    }
}

TEST(ContentHash, IsThatOfTheTextsAlone) {
  const std::string one = "the same text", other = one;
  EXPECT_EQ(hash_of({one}), hash_of({other}));
  const std::vector<std::string_view> texts = {one};
  EXPECT_NE(content_hash(texts), content_hash(texts, hash_of({"before"})));
}

TEST(ContentSet, AgreesWithAnOrderedSet) {
  std::mt19937_64 random(3);
  ContentSet set;
  std::set<std::pair<uint64_t, uint64_t>> expected;
  std::vector<ContentHash> made = {{0, 0}};
  for (int i = 0; i < 300'000; ++i) {
    // A third of the hashes are repetitions. Some of the others differ from an earlier hash in one half only.
    ContentHash hash = random() % 3 == 0 ? made[random() % made.size()] : ContentHash{random(), random()};
    if (random() % 7 == 0) hash.low = random() % 100;
    made.push_back(hash);
    EXPECT_EQ(set.has(hash), expected.contains({hash.high, hash.low}));
    EXPECT_EQ(set.insert(hash), expected.emplace(hash.high, hash.low).second);
  }
  EXPECT_EQ(set.size(), expected.size());
  for (const ContentHash& hash : made) EXPECT_FALSE(set.insert(hash));
  EXPECT_LE(set.bytes(), ContentSet::kBytesEach * set.size());
}

}  // namespace
}  // namespace megalith
