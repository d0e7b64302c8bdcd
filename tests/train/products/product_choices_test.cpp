#include "libcore/train/products/product_choices.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::tiny_config;

/// The number of kinds with these inner dimensions.
int64_t count(const std::set<ProductKind>& kinds, int64_t m, int64_t n, int64_t k) {
  return std::count_if(kinds.begin(), kinds.end(),
                       [&](const ProductKind& kind) { return kind.m == m && kind.n == n && kind.k == k; });
}

// By hand: the tiny model has 16 columns, 48 of queries, keys and values, 64 of the feed-forward layer, 9
// positions. A micro-batch of 2 has 18 rows. Each matrix has a product forward, and one for each of its two
// gradients; that of the weights is added to what is there.
TEST(ProductsOfARun, AreThoseOfItsLayersAndGradients) {
  PretrainConfig config = tiny_config();
  config.train.micro_batch = 2;
  const std::set<ProductKind> kinds = products_of({config.model, config.parallel, config.train});
  const int64_t rows = 2 * config.model.seq_length;
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{16, 48}, {16, 64}, {64, 16}}) {
    EXPECT_GE(count(kinds, rows, out, in), 1) << in << ' ' << out;  // forward
    EXPECT_GE(count(kinds, rows, in, out), 1) << in << ' ' << out;  // gradient of the input
    EXPECT_EQ(count(kinds, out, in, rows), 1) << in << ' ' << out;  // gradient of the weights
  }
  for (const ProductKind& kind : kinds)
    EXPECT_EQ(kind.k == rows, kind.accumulate && kind.trans_a) << kind.m << ' ' << kind.n << ' ' << kind.k;
}

TEST(ProductsOfARun, AreThoseOfAllRanks) {
  PretrainConfig config = tiny_config();
  const auto of = [&](int tensor) {
    config.parallel.tensor = tensor;
    return products_of({config.model, config.parallel, config.train});
  };
  const int64_t rows = config.train.micro_batch * config.model.seq_length;
  EXPECT_GE(count(of(1), rows, 64, 16), 1);
  EXPECT_EQ(count(of(1), rows, 32, 16), 0);
  EXPECT_GE(count(of(2), rows, 32, 16), 1);
  EXPECT_EQ(count(of(2), rows, 64, 16), 0);
}

}  // namespace
}  // namespace megalith
