#include "libcore/model/measure.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

constexpr int64_t kBatch = 3;

size_t tensor_bytes(int layers, int ranks, bool sequence) {
  ModelConfig model = test::tiny_gpt2();
  model.seq_length = 8;
  return measure({.model = model,
                  .layers = {.count = layers},
                  .split = {.rank = 0, .size = ranks, .sequence = sequence},
                  .micro_batch = kBatch})
      .tensor_bytes;
}

// Shoeybi et al. 2019: four all-reduces of [s, b, h] per layer, two in each direction. Korthikanti et al.
// 2022: sequence parallelism replaces each all-reduce by a gather and a scatter, and the backward pass
// gathers the two inputs once more.
TEST(Measure, CountsWhatALayersTensorGroupMoves) {
  const size_t rows = 8 * kBatch * sizeof(float),
               activations = rows * static_cast<size_t>(test::tiny_gpt2().hidden);
  EXPECT_EQ(tensor_bytes(2, 2, false) - tensor_bytes(1, 2, false), 4 * activations);
  EXPECT_EQ(tensor_bytes(2, 2, true) - tensor_bytes(1, 2, true), 10 * activations);
  // Counts the embedding's rows and the head's gradient and, for each token, the maximum logit, the sum of
  // exponentials and the loss.
  EXPECT_EQ(tensor_bytes(1, 2, false), 6 * activations + 3 * rows);
  EXPECT_EQ(tensor_bytes(1, 1, false), 0u);
}

// A rank has the gradients of norms' weights and biases from its own rows of a sequence only: here of two
// norms in each of three layers, and of the last one.
TEST(Measure, CountsTheGradientsThatTensorRanksSum) {
  ModelConfig model = test::tiny_gpt2();
  model.seq_length = 8;
  const auto summed = [&](int ranks, bool sequence, bool frozen) {
    return measure({.model = model,
                    .layers = {.count = 3},
                    .split = {.rank = 0, .size = ranks, .sequence = sequence},
                    .micro_batch = kBatch,
                    .tuning = {.frozen = frozen}})
        .summed;
  };
  EXPECT_EQ(summed(2, true, false), 2 * (2 * 3 + 1));
  EXPECT_EQ(summed(2, true, true), 0);
  EXPECT_EQ(summed(2, false, false), 0);
  EXPECT_EQ(summed(1, true, false), 0);
}

// An adapter's backward pass has five matrix products: dy B; its products with A, which gives dx, and with x,
// which gives A's gradient; x A^T, recomputed; and its product with dy, which gives B's gradient. Each takes
// 2 * rank * width operations per row.
TEST(Measure, CountsFiveProductsOfAnAdaptersBackwardPass) {
  ModelConfig model = test::tiny_gpt2();
  model.seq_length = 8;
  const auto backward_flops = [&](int64_t rank) {
    return measure({.model = model,
                    .layers = {.count = 1},
                    .micro_batch = kBatch,
                    .tuning = {.frozen = true,
                               .rank = rank,
                               .targets = {{.layer = "mlp.linear_fc2", .part = "c_proj"}}}})
        .backward.flops;
  };
  const auto rows = static_cast<double>(8 * kBatch), in = static_cast<double>(model.ffn_hidden),
             out = static_cast<double>(model.hidden);
  const double scaling = 2 * rows;  // ScaleBy on two [rows, rank] tensors; the rank grows by 1
  EXPECT_DOUBLE_EQ(static_cast<double>(backward_flops(5) - backward_flops(4)),
                   2 * rows * (2 * out + 3 * in) + scaling);
}

/// The calls of an op in a micro-batch of three layers.
int64_t calls(const char* op, const RecomputePlan& recompute, int ranks) {
  ModelConfig model = test::tiny_gpt2();
  model.seq_length = 8;
  model.hidden_dropout = 0;
  const StageCost cost = measure({.model = model,
                                  .layers = {.count = 3},
                                  .split = {.size = ranks},
                                  .recompute = recompute,
                                  .micro_batch = kBatch});
  const auto found = cost.ops.find(op);
  return found == cost.ops.end() ? 0 : found->second.calls;
}

// A norm takes the sum of the branch before it and the residual. No norm in its segment follows the last
// block's, whose sum is an op of its own.
TEST(Measure, CountsASumForEachSegmentOnly) {
  const RecomputePlan none{}, each{.granularity = Recompute::kFull, .layers = 1},
      all{.granularity = Recompute::kFull, .layers = 3};
  EXPECT_EQ(calls(LayerNorm::kName, none, 1), 2 * 3 + 1);
  EXPECT_EQ(calls(Dropout::kName, none, 1), 1);
  EXPECT_EQ(calls(Dropout::kName, each, 1), 3 + 3);  // a block at a time, twice
  EXPECT_EQ(calls(Dropout::kName, all, 1), 3 + 1);   // three blocks that keep nothing, then again
}

TEST(Measure, CountsOneReadingOfTheLogitsOfAWholeVocabulary) {
  EXPECT_EQ(calls(SoftmaxLoss::kName, {}, 1), 1);
  EXPECT_EQ(calls(SoftmaxStats::kName, {}, 1), 0);
  EXPECT_EQ(calls(SoftmaxLoss::kName, {}, 2), 0);
  EXPECT_EQ(calls(SoftmaxStats::kName, {}, 2), 1);
  EXPECT_EQ(calls(CrossEntropy::kName, {}, 2), 1);
}

}  // namespace
}  // namespace megalith
