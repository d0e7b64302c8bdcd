#include "libcore/train/run/evaluations.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/train/run/loop_fixture.h"

namespace megalith {
namespace {

using test::Loop;
using test::tiny_data;
using test::tiny_sample;

/// `size` samples that an evaluation reads as a whole. Of every third sample only 4 of the 9 labels count.
DataSet whole_set(int64_t size, int64_t first) {
  const auto counted = [first](int64_t i) { return (first + i) % 3 == 0 ? int64_t{4} : int64_t{9}; };
  SampleSource read = [first, counted](int64_t i, const SampleView& out) {
    tiny_sample(first + i, out);
    std::fill(out.loss_mask.begin() + counted(i), out.loss_mask.end(), 0.0f);
  };
  read.counted = counted;
  return {.read = read, .size = size, .whole = true};
}

class WholeValidation : public Loop {
 protected:
  PretrainConfig whole_config(const std::string& name) const {
    PretrainConfig c = config(name);
    c.train.iters = c.train.decay_iters = 4;
    c.train.eval_interval = 2;
    c.train.full_validation = true;
    return c;
  }
  /// The validation loss of the run's last checkpoint on `data`, evaluated in batches of one sample.
  double loss_of_samples(const PretrainConfig& run, const DataSet& data) {
    PretrainConfig c = run;
    c.train.eval_only = true;
    c.train.micro_batch = c.train.global_batch = 1;
    c.train.log_json = dir_ / "one-by-one.jsonl";
    std::filesystem::remove(c.train.log_json);
    double sum = 0, labels = 0;
    for (int64_t i = 0; i < data.size; ++i) {
      DataSets one = tiny_data();
      one.valid = {.read = [&](int64_t, const SampleView& out) { data.read.read(i, out); }, .size = 1};
      c.train.full_validation = false;
      c.train.eval_iters = 1;
      train(c, one, nullptr);
      const auto counted = static_cast<double>(data.read.counted(i));
      sum += counted * figures("one-by-one", "valid").back()["loss"].as_double();
      labels += counted;
    }
    return sum / labels;
  }
};

// 10 samples are two and a half batches of 4.
TEST_F(WholeValidation, CountsEachLabelOnce) {
  const PretrainConfig c = whole_config("run");
  DataSets data = tiny_data();
  data.valid = whole_set(10, 5000);
  train(c, data, nullptr);
  const std::vector<Json> valid = figures("run", "valid");
  ASSERT_EQ(valid.size(), 3U);
  EXPECT_EQ(valid[1]["loss"].dump(), valid[2]["loss"].dump());  // both after step 4, on the same samples
  EXPECT_NEAR(valid.back()["loss"].as_double(), loss_of_samples(c, data.valid), 1e-6);
}

TEST_F(WholeValidation, NeedsNoNumberOfBatches) {
  PretrainConfig c = whole_config("run");
  c.train.eval_iters = 0;
  DataSets data = tiny_data();
  data.valid = whole_set(3, 5000);
  train(c, data, nullptr);
  EXPECT_EQ(figures("run", "valid").size(), 3U);
  EXPECT_EQ(figures("run", "test").size(), 0U);
}

TEST_F(WholeValidation, ReportsEachOfSeveralSets) {
  PretrainConfig c = whole_config("run");
  c.train.multiple_validation = true;
  c.train.validation_names = {"wiki", "code"};
  DataSets data = tiny_data();
  data.valid = whole_set(10, 5000);
  data.more_valid = {whole_set(5, 7000)};
  train(c, data, nullptr);
  EXPECT_TRUE(logged(" validation-wiki loss at iteration 2 | lm loss value: "));
  EXPECT_TRUE(logged(" validation-code loss at iteration 4 on validation set | lm loss value: "));
  const std::vector<Json> valid = figures("run", "valid");
  ASSERT_EQ(valid.size(), 6U);
  EXPECT_EQ(valid[4]["set"].as_string(), "wiki");
  EXPECT_EQ(valid[5]["set"].as_string(), "code");
  EXPECT_NEAR(valid[5]["loss"].as_double(), loss_of_samples(c, data.more_valid[0]), 1e-6);
  c.train.validation_names.clear();
  c.checkpoint.save = c.checkpoint.load = dir_ / "other";
  train(c, data, nullptr);
  EXPECT_TRUE(logged(" validation-1 loss at iteration 2 | "));
}

}  // namespace
}  // namespace megalith
