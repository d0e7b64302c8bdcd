#include "libcore/finetune/tuning_data.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/text/formats/null_tokenizer.h"

namespace megalith::test {
namespace {

/// Examples of these lengths: a prompt of one token, then the answer. Example i has the ids 10 i, 10 i + 1,
/// ….
Examples examples_of(const std::vector<int>& lengths) {
  const PlainTokenizer numbers(std::make_unique<NullTokenizer>(999));
  Examples examples;
  for (size_t i = 0; i < lengths.size(); ++i) {
    std::string answer;
    for (int k = 1; k + 1 < lengths[i]; ++k) answer += (k > 1 ? " " : "") + std::to_string(10 * i + k);
    examples.add({.segments = {{std::to_string(10 * i), false}, {answer, true}}, .where = "x"}, numbers, {});
  }
  return examples;
}

struct Sample {
  explicit Sample(size_t rows) : tokens(rows), labels(rows), mask(rows), starts(rows) {}
  SampleView view() { return {tokens, labels, mask, starts}; }
  std::vector<int32_t> tokens, labels;
  std::vector<float> mask;
  std::vector<int32_t> starts;
};

TEST(TuningData, PacksHoldEveryExampleOnceAndNoMoreThanFits) {
  std::vector<int> lengths;
  for (int i = 0; i < 60; ++i) lengths.push_back(3 + i * 7 % 30);
  const Examples examples = examples_of(lengths);
  const Packs packs = pack(examples, 40);
  std::vector<int> seen(lengths.size());
  int64_t rows = 0;
  for (const auto& one : packs) {
    int64_t used = 0;
    for (const int32_t i : one) {
      used += examples[i].rows();
      ++seen[static_cast<size_t>(i)];
    }
    EXPECT_LE(used, 40);
    rows += used;
  }
  EXPECT_EQ(seen, std::vector<int>(lengths.size(), 1));
  // At most one pack more than the minimum.
  EXPECT_LE(static_cast<int64_t>(packs.size()), (rows + 39) / 40 + 1);
}

TEST(TuningData, PacksKeepTheirDocumentsApart) {
  const Examples examples = examples_of({4, 3});
  TuningData data(examples, pack(examples, 7), {.shuffle = false});
  Sample sample(7);
  const SampleSource source = data.source();
  source.read(0, sample.view());
  EXPECT_EQ(sample.tokens, (std::vector<int32_t>{0, 1, 2, 10, 11, 0, 0}));
  EXPECT_EQ(sample.labels, (std::vector<int32_t>{1, 2, 999, 11, 999, 0, 0}));
  EXPECT_EQ(sample.mask, (std::vector<float>{1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(sample.starts, (std::vector<int32_t>{0, 0, 0, 3, 3, 5, 5}));
  EXPECT_EQ(source.length(0), 5);
  EXPECT_EQ(source.counted(0), 5);
}

TEST(TuningData, AnEpochIsEveryRecordInAnotherOrderAndThenEmptyOnes) {
  const Examples examples = examples_of({3, 4, 5, 6, 7, 8, 9});
  const TuningData data(examples, one_by_one(examples), {.step = 4, .seed = 5});
  const SampleSource source = data.source();
  ASSERT_EQ(data.samples_of_epoch(), 8);
  std::vector<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < 7; ++i) lengths.push_back(source.length(epoch * 8 + i));
    EXPECT_EQ(source.length(epoch * 8 + 7), 0);
    EXPECT_EQ(source.counted(epoch * 8 + 7), 0);
    orders.push_back(lengths);
    std::sort(lengths.begin(), lengths.end());
    EXPECT_EQ(lengths, (std::vector<int64_t>{2, 3, 4, 5, 6, 7, 8}));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  const TuningData again(examples, one_by_one(examples), {.step = 4, .seed = 5});
  EXPECT_EQ(again.source().length(16), orders[2][0]);  // reads the third epoch first, as a resumed run does
}

// The expected order was computed with numpy 2.4.6: x = np.arange(7); np.random.RandomState(5 +
// epoch).shuffle(x)
TEST(TuningData, AnEpochsOrderIsNumpysShuffle) {
  const Examples examples = examples_of({3, 3, 3, 3, 3, 3, 3});
  const TuningData data(examples, one_by_one(examples), {.seed = 5});
  const std::vector<std::vector<int64_t>> wanted = {
      {6, 2, 4, 1, 0, 5, 3}, {4, 5, 6, 0, 3, 1, 2}, {2, 5, 0, 6, 3, 1, 4}};
  for (size_t epoch = 0; epoch < wanted.size(); ++epoch)
    for (size_t i = 0; i < 7; ++i)
      EXPECT_EQ(data.source().example(static_cast<int64_t>(7 * epoch + i)), wanted[epoch][i]) << epoch << i;
}

TEST(TuningData, SortedStretchesHoldNeighboursInLength) {
  std::vector<int> lengths;
  for (int i = 0; i < 40; ++i) lengths.push_back(3 + i * 11 % 37);
  const Examples examples = examples_of(lengths);
  const TuningData data(examples, one_by_one(examples), {.step = 4, .sorted = 20, .seed = 1});
  const SampleSource source = data.source();
  for (int64_t i = 0; i + 1 < 20; ++i) EXPECT_GE(source.length(i), source.length(i + 1));
  for (int64_t i = 20; i + 1 < 40; ++i) EXPECT_GE(source.length(i), source.length(i + 1));
  EXPECT_LT(source.length(19), source.length(20));
}

// In each epoch the two answers of a pair are neighbours, the chosen one first; the order of the pairs
// changes from epoch to epoch.
TEST(TuningData, ShufflesPairsAsAWhole) {
  const Examples all = examples_of({4, 9, 5, 5, 7, 3, 3, 3, 8, 6});
  for (const int64_t sorted : {0, 4}) {
    const TuningData data(all, one_by_one(all), {.step = 4, .group = 2, .sorted = sorted, .seed = 3});
    EXPECT_EQ(data.samples_of_epoch(), 12);
    const SampleSource source = data.source();
    std::set<std::vector<int64_t>> orders;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<int64_t> order;
      for (int64_t i = 0; i < 10; i += 2) {
        const int64_t chosen = source.example(12 * epoch + i);
        EXPECT_EQ(chosen % 2, 0);
        EXPECT_EQ(source.example(12 * epoch + i + 1), chosen + 1);
        order.push_back(chosen);
      }
      EXPECT_EQ(source.example(12 * epoch + 10), -1);
      orders.insert(order);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, (std::vector<int64_t>{0, 2, 4, 6, 8}));
    }
    EXPECT_GT(orders.size(), 1U);
  }
}

TEST(TuningData, InOrderIsEachExampleOnce) {
  const Examples train = examples_of({3, 5}), dev = examples_of({4});
  const SampleSource source = in_order(train, &dev);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 4; ++i) lengths.push_back(source.length(i));
  EXPECT_EQ(lengths, (std::vector<int64_t>{train[0].rows(), train[1].rows(), dev[0].rows(), 0}));
}

}  // namespace
}  // namespace megalith::test
