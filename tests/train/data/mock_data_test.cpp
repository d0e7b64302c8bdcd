#include "libcore/train/data/mock_data.h"

#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

struct Sample {
  std::vector<int32_t> tokens, labels;
  std::vector<float> mask;
};

Sample sample_of(const DataSet& set, int64_t index, size_t length = 6000) {
  Sample sample{std::vector<int32_t>(length), std::vector<int32_t>(length), std::vector<float>(length)};
  set.read.read(index, {.tokens = sample.tokens, .labels = sample.labels, .loss_mask = sample.mask});
  return sample;
}

TEST(MockData, CountsUpInDocumentsThatEnd) {
  const DataSets data = mock_data(5000, 4999, 1234, {10, 4, 2});
  EXPECT_EQ(data.train.size, 10);
  EXPECT_EQ(data.valid.size, 4);
  EXPECT_EQ(data.test.size, 2);
  const Sample sample = sample_of(data.train, 3);
  int ends = 0;
  for (size_t i = 0; i + 1 < sample.tokens.size(); ++i) {
    EXPECT_EQ(sample.labels[i], sample.tokens[i + 1]);
    const bool end = sample.tokens[i] == 4999;
    ends += end;
    if (!end && sample.labels[i] != 4999) {
      EXPECT_EQ(sample.labels[i], sample.tokens[i] + 1) << i;
    }
    if (end && sample.labels[i] != 4999) {
      EXPECT_EQ(sample.labels[i], 1) << i;
    }
    EXPECT_EQ(sample.mask[i], 1);
  }
  EXPECT_GE(ends, 1);  // the sample is longer than any document (at most 4096 tokens)
}

TEST(MockData, IsTheSameEachTimeAndOtherForEachSamplePartAndSeed) {
  const DataSets data = mock_data(100, 99, 1, {9, 9, 9}), other = mock_data(100, 99, 2, {9, 9, 9});
  const std::vector<int32_t> first = sample_of(data.train, 0).tokens;
  EXPECT_EQ(sample_of(data.train, 0).tokens, first);
  EXPECT_NE(sample_of(data.train, 1).tokens, first);
  EXPECT_NE(sample_of(data.valid, 0).tokens, first);
  EXPECT_NE(sample_of(other.train, 0).tokens, first);
  for (const int64_t vocab : {2, 3, 100})
    for (const int32_t id :
         sample_of(mock_data(vocab, static_cast<int32_t>(vocab - 1), 1, {1, 1, 1}).train, 0).tokens) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, vocab);
    }
}

}  // namespace
}  // namespace megalith
