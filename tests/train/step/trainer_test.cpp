#include "libcore/train/step/trainer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;
using test::tiny_sample;

std::vector<float> values(Trainer& trainer) {
  std::vector<float> out;
  for (const Param& param : trainer.params().all()) {
    const size_t at = out.size();
    out.resize(at + static_cast<size_t>(param.value.elements()));
    trainer.stream().to_host(&out[at], param.value);
  }
  return out;
}

struct Tiny {
  explicit Tiny(const PretrainConfig& config)
      : trainer({config.model, config.parallel, config.train}, *backend, *self) {
    trainer.initialize();
  }
  Trainer::StepResult step(int k) { return trainer.step(tiny_sample, 4 * k, 1e-2); }

  std::unique_ptr<Backend> backend = make_cpu_backend();
  std::unique_ptr<Communicator> self = make_self_comm();
  Trainer trainer;
};

TEST(Trainer, LearnsAndRepeatsBitForBit) {
  Tiny a(tiny_config()), b(tiny_config());
  double first = 0, last = 0;
  for (int k = 0; k < 60; ++k) {
    const Trainer::StepResult result = a.step(k);
    EXPECT_EQ(result.loss, b.step(k).loss);
    if (k == 0) first = result.loss;
    last = result.loss;
  }
  // An untrained model gives all ids the same probability.
  EXPECT_NEAR(first, std::log(test::kTinyVocab), 0.1);
  EXPECT_LT(last, first - 1.0);
  EXPECT_EQ(values(a.trainer), values(b.trainer));
  EXPECT_EQ(a.trainer.optimizer().steps(), 60);
}

// Tolerance for sums in another order: fp32 rounding over the 2 * 9 rows of a microbatch and 2 layers.
constexpr double kOrderOfSums = 2e-6;

TEST(Trainer, AccumulatesToTheSameStepAsOneBigBatch) {
  PretrainConfig big = tiny_config();
  big.train.micro_batch = 4;
  Tiny accumulated(tiny_config()), whole(big);  // dropout masks depend on the sample, not on the batch
  for (int k = 0; k < 5; ++k) {
    const Trainer::StepResult a = accumulated.step(k), b = whole.step(k);
    EXPECT_NEAR(a.loss / b.loss, 1, kOrderOfSums) << k;
    EXPECT_NEAR(a.grad_norm / b.grad_norm, 1, 10 * kOrderOfSums) << k;
  }
}

TEST(Trainer, TakesTheMeanOverTheTokensThatCount) {
  PretrainConfig config = tiny_config();
  config.model.attention_dropout = config.model.hidden_dropout = 0;
  config.train.micro_batch = config.train.global_batch = 1;
  Tiny tiny(config);
  // The mean loss of the first n tokens; the others are masked. Attention is causal, so they do not change
  // the first n losses.
  const auto loss_of_first = [&](size_t n) {
    return tiny.trainer.evaluate(
        [n](int64_t i, const SampleView& out) {
          tiny_sample(i, out);
          for (size_t k = n; k < out.loss_mask.size(); ++k) out.loss_mask[k] = 0;
        },
        3);
  };
  const double one = loss_of_first(1), two = loss_of_first(2), nine = loss_of_first(9);
  EXPECT_GT(std::fabs(2 * two - one), 0);
  const double second = 2 * two - one;
  double sum = one + second;
  for (size_t n = 3; n <= 9; ++n)
    sum += static_cast<double>(n) * loss_of_first(n) - static_cast<double>(n - 1) * loss_of_first(n - 1);
  EXPECT_NEAR(sum / 9, nine, 1e-9);
  EXPECT_EQ(loss_of_first(0), 0);
}

TEST(Trainer, EvaluatesWithoutDropoutAndWithoutTraces) {
  Tiny tiny(tiny_config());
  tiny.step(0);
  const std::vector<float> before = values(tiny.trainer);
  const double once = tiny.trainer.evaluate(tiny_sample, 400);
  EXPECT_EQ(tiny.trainer.evaluate(tiny_sample, 400), once);
  EXPECT_EQ(values(tiny.trainer), before);
  Tiny other(tiny_config());
  other.step(0);
  EXPECT_EQ(other.step(1).loss, tiny.step(1).loss);  // the evaluations do not change the next step
}

TEST(Trainer, SkipsAStepThatIsNotFinite) {
  Tiny tiny(tiny_config());
  tiny.step(0);
  Param& bias = *tiny.trainer.params().find("decoder.final_layernorm.bias");
  std::vector<float> kept(static_cast<size_t>(bias.value.elements()));
  tiny.trainer.stream().to_host(kept.data(), bias.value);
  tiny.trainer.stream().fill(bias.value, std::numeric_limits<double>::quiet_NaN());
  const std::vector<float> before = values(tiny.trainer);
  const Trainer::StepResult result = tiny.step(1);
  EXPECT_TRUE(result.skipped);
  EXPECT_FALSE(std::isfinite(result.loss));
  const std::vector<float> after = values(tiny.trainer);
  EXPECT_EQ(std::memcmp(after.data(), before.data(), before.size() * sizeof(float)), 0);
  EXPECT_EQ(tiny.trainer.optimizer().steps(), 1);
  tiny.trainer.stream().from_host(bias.value, kept.data());
  EXPECT_FALSE(tiny.step(2).skipped);
}

TEST(Trainer, TakesExactlyTheMemoryThatIsKnownBefore) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    PretrainConfig config = tiny_config();
    config.train.recompute = recompute;
    if (recompute == Recompute::kFull) config.train.recompute_method = "uniform";
    Tiny tiny(config);
    EXPECT_THROW(tiny.trainer.check_memory(), Error);  // no step has run yet
    tiny.step(0);
    tiny.trainer.evaluate(tiny_sample, 0);
    EXPECT_NO_THROW(tiny.trainer.check_memory());
  }
}

TEST(Trainer, RecomputesWithoutChangingAnything) {
  PretrainConfig full = tiny_config();
  full.train.recompute = Recompute::kFull;
  full.train.recompute_method = "uniform";
  Tiny kept(tiny_config()), again(full);
  EXPECT_LT(again.trainer.memory().activations(), kept.trainer.memory().activations());
  for (int k = 0; k < 3; ++k) EXPECT_EQ(kept.step(k).loss, again.step(k).loss);
}

}  // namespace
}  // namespace megalith
