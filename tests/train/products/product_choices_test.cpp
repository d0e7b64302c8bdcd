#include "libcore/train/products/product_choices.h"

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

// On the CPU, which takes no algorithm from a checkpoint but says of which it had some.
TEST(ProductsOfACheckpoint, AreNamedWhereTheyCannotBeRead) {
  const PretrainConfig config = tiny_config();
  StepKinds kinds({config.model, config.parallel, config.train});
  const auto world = make_self_comm();
  const auto backend = make_backend("cpu");
  const auto choose = [&](const std::string& products) {
    const Json saved = Json::parse(R"({"product_algorithms": )" + products + "}", "test");
    return choose_products({.world = *world,
                            .peer_timeout = std::chrono::seconds(1),
                            .kinds = kinds,
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
