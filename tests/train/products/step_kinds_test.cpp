#include "libcore/train/products/step_kinds.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;

std::set<ProductKind> products_of(const PretrainConfig& config) {
  return StepKinds({config.model, config.parallel, config.train}).products();
}

/// The number of kinds with these inner dimensions.
int64_t count(const std::set<ProductKind>& kinds, int64_t m, int64_t n, int64_t k) {
  return std::count_if(kinds.begin(), kinds.end(),
                       [&](const ProductKind& kind) { return kind.m == m && kind.n == n && kind.k == k; });
}

// By hand: the tiny model has 16 columns, 48 of queries, keys and values, 64 of the feed-forward layer, 9
// positions. A micro-batch of 2 has 18 rows. Each matrix has a product forward, and one for each of its two
// gradients; that of the weights is added to what is there.
TEST(StepKinds, HaveTheProductsOfLayersAndGradients) {
  PretrainConfig config = tiny_config();
  config.train.micro_batch = 2;
  const std::set<ProductKind> kinds = products_of(config);
  const int64_t rows = 2 * config.model.seq_length;
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{16, 48}, {16, 64}, {64, 16}}) {
    EXPECT_GE(count(kinds, rows, out, in), 1) << in << ' ' << out;  // forward
    EXPECT_GE(count(kinds, rows, in, out), 1) << in << ' ' << out;  // gradient of the input
    EXPECT_EQ(count(kinds, out, in, rows), 1) << in << ' ' << out;  // gradient of the weights
  }
  for (const ProductKind& kind : kinds)
    EXPECT_EQ(kind.k == rows, kind.accumulate && kind.trans_a) << kind.m << ' ' << kind.n << ' ' << kind.k;
}

// The products around GELU and those of weights with a bias have an epilogue: those of the tiny GPT-2 do.
TEST(StepKinds, HaveTheEpilogues) {
  PretrainConfig config = tiny_config();
  config.train.micro_batch = 2;
  const int64_t rows = 2 * config.model.seq_length;
  const auto of = [&](Epilogue epilogue) {
    std::set<ProductKind> kinds = products_of(config);
    std::erase_if(kinds, [&](const ProductKind& kind) { return kind.epilogue != epilogue; });
    return kinds;
  };
  EXPECT_EQ(of(Epilogue::kGelu).size(), 1U);
  EXPECT_EQ(count(of(Epilogue::kGelu), rows, 64, 16), 1);
  EXPECT_EQ(of(Epilogue::kGeluGrad).size(), 1U);
  EXPECT_EQ(count(of(Epilogue::kGeluGrad), rows, 64, 16), 1);
  EXPECT_EQ(of(Epilogue::kBiasGrad).size(),
            4U);  // of queries, keys and values, of the output, and of both layers
  config.model.swiglu = true;
  config.model.linear_bias = false;
  config.model.qkv_bias = false;
  for (const Epilogue epilogue : {Epilogue::kGelu, Epilogue::kGeluGrad, Epilogue::kBiasGrad})
    EXPECT_TRUE(of(epilogue).empty());
}

TEST(StepKinds, AreThoseOfAllRanks) {
  PretrainConfig config = tiny_config();
  const auto of = [&](int tensor) {
    config.parallel.tensor = tensor;
    return products_of(config);
  };
  const int64_t rows = config.train.micro_batch * config.model.seq_length;
  EXPECT_GE(count(of(1), rows, 64, 16), 1);
  EXPECT_EQ(count(of(1), rows, 32, 16), 0);
  EXPECT_GE(count(of(2), rows, 32, 16), 1);
  EXPECT_EQ(count(of(2), rows, 64, 16), 0);
}

// Rank 0 asks for the products, and then for the attention: the dry run of all ranks is one.
TEST(StepKinds, AreFoundOnce) {
  const PretrainConfig config = tiny_config();
  StepKinds kinds({config.model, config.parallel, config.train});
  const std::set<ProductKind>* const first = &kinds.products();
  EXPECT_FALSE(first->empty());
  kinds.attention();
  EXPECT_EQ(&kinds.products(), first) << "the set of another dry run";
}

}  // namespace
}  // namespace megalith
