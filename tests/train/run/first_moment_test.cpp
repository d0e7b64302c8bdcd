// --exp-avg-dtype bf16: what a run loses by it, and that it is resumed and shared out without losing a bit.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/native/reader.h"
#include "libcore/train/run/loop.h"
#include "tests/support/json_log.h"
#include "tests/train/run/layouts.h"
#include "tests/train/run/loop_fixture.h"

namespace megalith {
namespace {

class FirstMoment : public test::Loop {
 protected:
  PretrainConfig config(const std::string& folder, MomentType type = MomentType::kBf16) const {
    PretrainConfig c = Loop::config(folder);
    c.train.first_moments = type;
    c.train.threads = 1;
    c.train.eval_iters = 0;
    return c;
  }
  std::vector<double> losses(const std::string& folder) const {
    return test::train_losses(dir_ / (folder + ".jsonl"));
  }
  CheckpointReader saved(const std::string& folder) const { return CheckpointReader(checkpoint(folder, 20)); }
  void expect_same_state(const std::string& a, const std::string& b) const {
    test::expect_same_tensors(saved(a), saved(b));
  }
};

// A step moves a moment by (1 - beta1) of its distance from the gradient. With beta1 = 0.9 it can come to
// rest 2^-8 / 0.1, 4 %, from where it should be, and an update is off by no more.
TEST_F(FirstMoment, InBf16TrainsAlmostAsInFp32) {
  for (const bool bf16 : {false, true}) {
    for (const MomentType type : {MomentType::kFp32, MomentType::kBf16}) {
      PretrainConfig c = config(concat(type == MomentType::kBf16 ? "narrow" : "wide", bf16), type);
      c.checkpoint = {};
      c.train.bf16 = bf16;
      c.train.iters = c.train.decay_iters = 50;
      train(c, test::tiny_data(), nullptr);
    }
    const std::vector<double> wide = losses(concat("wide", bf16)), narrow = losses(concat("narrow", bf16));
    ASSERT_EQ(wide.size(), 50U);
    ASSERT_EQ(narrow.size(), 50U);
    EXPECT_LT(wide.back(), 0.9 * wide.front());
    EXPECT_NE(wide, narrow);
    constexpr double kBound = 5e-3;
    for (size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(narrow[i] / wide[i], 1, kBound) << i;
  }
}

TEST_F(FirstMoment, InBf16IsResumedBitForBit) {
  train(config("whole"), test::tiny_data(), nullptr);
  PretrainConfig first = config("parts");
  first.train.exit_interval = 10;
  train(first, test::tiny_data(), nullptr);
  train(config("parts"), test::tiny_data(), nullptr);
  expect_same_state("whole", "parts");
}

TEST_F(FirstMoment, TakesTwoBytesInACheckpoint) {
  train(config("run"), test::tiny_data(), nullptr);
  int moments = 0;
  const CheckpointReader run = saved("run");
  for (const IndexedTensor& tensor : run.index().tensors) {
    const bool first = tensor.name.starts_with("optim.m.");
    moments += first ? 1 : 0;
    EXPECT_EQ(tensor.dtype, first ? DType::kBf16 : DType::kF32) << tensor.name;
  }
  EXPECT_GT(moments, 10);
}

// A moment that was saved in the other type is converted.
TEST_F(FirstMoment, ChangesItsTypeInTheMiddleOfARun) {
  for (const MomentType type : {MomentType::kFp32, MomentType::kBf16}) {
    const std::string folder = type == MomentType::kFp32 ? "to_bf16" : "to_fp32";
    PretrainConfig first = config(folder, type);
    first.train.exit_interval = 10;
    train(first, test::tiny_data(), nullptr);
    train(config(folder, type == MomentType::kFp32 ? MomentType::kBf16 : MomentType::kFp32),
          test::tiny_data(), nullptr);
    const DType wanted = type == MomentType::kFp32 ? DType::kBf16 : DType::kF32;
    EXPECT_EQ(saved(folder).index().find("optim.m.decoder.final_layernorm.weight")->dtype, wanted);
  }
}

// Each element is rounded by itself, so it does not matter which rank has it.
TEST_F(FirstMoment, HasTheSameBitsHoweverItIsShared) {
  for (const auto& [folder, sharding] : {std::pair<const char*, Sharding>{"none", Sharding::kNone},
                                         {"optimizer", Sharding::kOptimizer},
                                         {"gradients", Sharding::kGradients}}) {
    PretrainConfig c = test::shared(config(folder), {.name = folder, .data = 2, .sharding = sharding});
    Problems problems;
    c.validate(problems);
    problems.throw_if_any();
    train(c, test::tiny_data(), nullptr);
  }
  expect_same_state("none", "optimizer");
  expect_same_state("none", "gradients");
}

}  // namespace
}  // namespace megalith
