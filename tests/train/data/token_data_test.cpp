#include "libcore/train/data/token_data.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Ids = std::vector<int32_t>;

struct Sample {
  Ids tokens, labels;
  std::vector<float> mask;
  bool operator==(const Sample&) const = default;
};
Sample sample_of(const DataSet& set, int64_t index, size_t length) {
  Sample sample{Ids(length), Ids(length), std::vector<float>(length)};
  set.read.read(index, {.tokens = sample.tokens, .labels = sample.labels, .loss_mask = sample.mask});
  return sample;
}

/// A dataset of documents of the golden FIM tokenizer, which end with its end token, 0.
class TokenData : public testing::Test {
 protected:
  TokenData() {
    TokenizerFiles files;
    files.type = "HuggingFaceTokenizer";
    files.model = test::test_data("data/goldens/fim/tokenizer.json");
    tokenizer_ = make_tokenizer(files);
    IndexedDatasetWriter writer(dir_ / "d", IndexedDType::kI32);
    for (int i = 0; i < 30; ++i) {
      Ids ids;
      tokenizer_->encode("def f" + std::to_string(i) + "(x):\n    return 'K\xC3\xA4se' + x\n", ids);
      ids.push_back(0);
      writer.add_document(ids, Ids{static_cast<int32_t>(ids.size())});
    }
    writer.finish();
    data_.emplace(build_whole(open_blend({dir_ / "d"}), {.seq_length = kLength}, 0));
  }
  TokenRules rules() const { return {.vocab_size = tokenizer_->vocab_size(), .seed = 1234}; }
  TokenRules fim_rules(double rate) const {
    FimConfig config;
    config.rate = rate;
    TokenRules out = rules();
    out.fim = std::make_shared<FimPermutation>(config, *tokenizer_);
    return out;
  }

  static constexpr size_t kLength = 40;
  const test::TempDir dir_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<TrainingDataset> data_;
};

TEST_F(TokenData, IsPermutedByTheDrawsOfItsSample) {
  const DataSet plain = data_set_of(*data_, rules(), 0), fim = data_set_of(*data_, fim_rules(0.8), 0);
  ASSERT_EQ(fim.size, plain.size);
  FimConfig config;
  config.rate = 0.8;
  const FimPermutation permutation(config, *tokenizer_);
  int changed = 0;
  for (int64_t i = 0; i < fim.size; ++i) {
    const Sample before = sample_of(plain, i, kLength), after = sample_of(fim, i, kLength);
    Ids row = before.tokens;
    row.push_back(before.labels.back());
    SampleDraws draws(1234, 0, i);
    const size_t kept = permutation.permute(row, draws);
    EXPECT_EQ(after.tokens, Ids(row.begin(), row.end() - 1));
    EXPECT_EQ(after.labels, Ids(row.begin() + 1, row.end()));
    for (size_t at = 0; at < kLength; ++at) EXPECT_EQ(after.mask[at], at + 1 < kept ? 1 : 0);
    changed += after.tokens != before.tokens;
    EXPECT_EQ(after, sample_of(fim, i, kLength));
  }
  EXPECT_GT(changed, fim.size / 2);
}

TEST_F(TokenData, OfAnotherPartIsPermutedOtherwise) {
  const DataSet train = data_set_of(*data_, fim_rules(1), 0), valid = data_set_of(*data_, fim_rules(1), 1);
  EXPECT_NE(sample_of(train, 3, kLength).tokens, sample_of(valid, 3, kLength).tokens);
}

TEST_F(TokenData, ReadAsAWholeCountsTheLabelsInTheLoss) {
  DataSet set = data_set_of(*data_, rules(), 1);
  tell_documents(set, 0, true);
  read_as_a_whole(set, kLength, LabelsInLoss::kSome);
  EXPECT_TRUE(set.whole);
  for (int64_t i = 0; i < set.size; ++i) {
    int64_t in_loss = 0;
    for (const int32_t token : sample_of(set, i, kLength).tokens) in_loss += token != 0;
    EXPECT_EQ(set.read.counted(i), in_loss);
  }
}

TEST_F(TokenData, ReadAsAWholeIsReadOnceForItsCount) {
  int reads = 0;
  DataSet set;
  set.size = 3;
  set.read = [&reads](int64_t index, const SampleView& out) {
    ++reads;
    std::fill(out.loss_mask.begin(), out.loss_mask.begin() + index, 1.0f);
  };
  read_as_a_whole(set, kLength, LabelsInLoss::kSome);
  for (const int64_t index : {2, 0, 2, 2, 0}) EXPECT_EQ(set.read.counted(index), index);
  EXPECT_EQ(reads, 2);
}

// Without masks, the numbers of labels are known: no rank reads the set only to count them.
TEST_F(TokenData, ReadAsAWholeIsNotReadForAKnownCount) {
  DataSet plain = data_set_of(*data_, rules(), 1);
  read_as_a_whole(plain, kLength, LabelsInLoss::kAll);
  for (int64_t i = 0; i < plain.size; ++i) {
    const Sample sample = sample_of(plain, i, kLength);
    EXPECT_EQ(plain.read.counted(i), std::count(sample.mask.begin(), sample.mask.end(), 1));
  }
  DataSet unread;
  unread.size = 3;
  unread.read = [](int64_t, const SampleView&) { ADD_FAILURE() << "was read"; };
  read_as_a_whole(unread, kLength, LabelsInLoss::kAll);
  EXPECT_TRUE(unread.whole);
  EXPECT_EQ(unread.read.counted(2), static_cast<int64_t>(kLength));
}

TEST_F(TokenData, HoldsOnlyIdsOfTheVocabulary) {
  TokenRules few = rules();
  few.vocab_size = 50;
  const DataSet set = data_set_of(*data_, few, 0);
  try {
    sample_of(set, 0, kLength);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("d: sample 0 of split train holds the id "), std::string::npos);
  }
}

}  // namespace
}  // namespace megalith
