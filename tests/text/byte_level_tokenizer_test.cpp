#include "libcore/text/byte_level_tokenizer.h"

#include <gtest/gtest.h>

#include "tests/text/fixtures.h"

namespace megalith {
namespace {

/// Bytes as their own ids, and the tokens "ab" and "abc", which merging reaches or not.
ByteLevelModel small_model() {
  ByteLevelModel model;
  model.name = "small";
  for (int32_t byte = 0; byte < 256; ++byte) {
    model.tokens.emplace_back(1, static_cast<char>(byte));
    model.byte_ids[static_cast<size_t>(byte)] = byte;
  }
  model.tokens.emplace_back("ab");
  model.tokens.emplace_back("abc");
  model.merges = {{'a', 'b', 256}};
  return model;
}

TEST(ByteLevelTokenizer, TakesATokenThatNoMergeReachesOnlyWhereMergesAreIgnored) {
  ByteLevelModel model = small_model();
  for (int round = 0; round < 2; ++round)
    EXPECT_EQ(test::encode(ByteLevelTokenizer(model), "abc"), (std::vector<int32_t>{256, 'c'}));
  model.ignore_merges = true;
  const ByteLevelTokenizer tokenizer(model);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(test::encode(tokenizer, "abc"), (std::vector<int32_t>{257}));
    EXPECT_EQ(test::encode(tokenizer, "abcd"), (std::vector<int32_t>{256, 'c', 'd'}));
  }
}

}  // namespace
}  // namespace megalith
