#include "libcore/train/products/product_choices.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/cuda_plugin.h"
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

// The products around GELU and those of weights with a bias have an epilogue: those of the tiny GPT-2 do.
TEST(ProductsOfARun, HaveTheirEpilogues) {
  PretrainConfig config = tiny_config();
  config.train.micro_batch = 2;
  const int64_t rows = 2 * config.model.seq_length;
  const auto of = [&](Epilogue epilogue) {
    std::set<ProductKind> kinds = products_of({config.model, config.parallel, config.train});
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

// On the CPU, which takes no algorithm from a checkpoint but says of which it had some.
TEST(ProductsOfACheckpoint, AreNamedWhereTheyCannotBeRead) {
  const PretrainConfig config = tiny_config();
  const RunShape shape{config.model, config.parallel, config.train};
  const auto world = make_self_comm();
  const auto backend = make_backend("cpu");
  const auto choose = [&](const std::string& products) {
    const Json saved = Json::parse(R"({"product_algorithms": )" + products + "}", "test");
    return choose_products({.world = *world,
                            .peer_timeout = std::chrono::seconds(1),
                            .shape = shape,
                            .saved = &saved,
                            .path = "c",
                            .place = "c/args.json"},
                           *backend);
  };
  const std::string begin = R"({"gpu": "G", "cublaslt": 130100, "algorithms": {"1x1x1": )", digits(128, '0');
  EXPECT_TRUE(choose(begin + '"' + digits + "\"}}").is_null());
  const std::pair<std::string, std::string> damaged[] = {
      {begin + '"' + digits.substr(1) + "\"}}", "128 hexadecimal digits"},
      {begin + "\"00000000\"}}", "128 hexadecimal digits"},
      {begin + '"' + digits.substr(1) + "g\"}}", "128 hexadecimal digits"},
      {begin + "\"\"}}", "128 hexadecimal digits"},
      {begin + "7}}", "is not a string"},
      {R"({"gpu": "G", "cublaslt": 1})", "algorithms"},
      {"[]", "gpu"}};
  for (const auto& [products, part] : damaged) try {
      choose(products);
      ADD_FAILURE() << products;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::kData) << message;
      EXPECT_EQ(message.rfind("c/args.json: product_algorithms", 0), 0U) << message;
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
}

}  // namespace
}  // namespace megalith
