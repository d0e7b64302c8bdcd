#include "libcore/plan/shape/parameter_count.h"

#include <gtest/gtest.h>

#include "libcore/json/small_json.h"
#include "libcore/plan/shape/hf_shape.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

// The numbers of parameters that the authors of each model state, with two to four digits in total, and two
// or three digits per token.
TEST(ParameterCount, OfMixturesIsThePublishedOne) {
  const Json models = load_small(MEGALITH_SOURCE_DIR "/docs/mixtures.json")["models"];
  ASSERT_GE(models.as_object().size(), 10u);
  for (const auto& [name, entry] : models.as_object()) {
    const ModelShape m = parse_hf_shape(entry["config"], name);
    const double stated = entry["parameters"].as_double(), active = entry["active"].as_double();
    const Json* without = entry.find("active_without_embedding");
    const double embedding = without && without->as_bool() ? static_cast<double>(m.vocab_size) * m.hidden : 0;
    EXPECT_NEAR(total_parameters(m) / stated, 1, 0.015) << name;
    EXPECT_NEAR((active_parameters(m) - embedding) / active, 1, 0.025) << name;
  }
}

// Mixtral-8x7B: 46,702,792,704 parameters are in its released weights.
TEST(ParameterCount, OfMixtralIsThatOfItsWeights) {
  const Json models = load_small(MEGALITH_SOURCE_DIR "/docs/mixtures.json")["models"];
  EXPECT_EQ(total_parameters(parse_hf_shape(models["Mixtral-8x7B"]["config"], "Mixtral")), 46702792704.0);
}

// Expected by hand. The tensor ranks share the attention, 64*192/2 + 96 + 64*64/2 + 64, and repeat the two
// norms and the router's 8 columns with a bias each. Of the 8 experts with (64*32 + 32) + (32*64 + 64)
// parameters, a rank has 8/4; each is split in two, except for its second bias.
TEST(ParameterCount, OfARankHasItsShareOfTheExperts) {
  ModelShape m = test::gpt(2, 64, 4, 32, 512);
  m.experts = 8;
  m.expert_ffn = 32;
  const ParameterCount count = count_parameters(m, {.tensor = 2, .expert = 4, .expert_tensor = 2});
  EXPECT_EQ(count.block, 6144.0 + 96 + 2048 + 64 + 256 + 8 * 65);
  EXPECT_EQ(count.experts, 2.0 * (64 * 16 + 16 + 16 * 64 + 64));
  EXPECT_EQ(count.plain_block, 6144.0 + 96 + 2048 + 64 + 256 + 8192 + 128 + 8192 + 64);
}

// DeepSeek-V3's report: the files have 685 billion parameters, the model 671. The difference is the layer
// that predicts a further token, and copies of the embedding and the head (0.93 billion each), which the
// layer shares with the model.
TEST(ParameterCount, OfAFurtherPredictionIsALayerMore) {
  const Json models = load_small(MEGALITH_SOURCE_DIR "/docs/mixtures.json")["models"];
  ModelShape m = parse_hf_shape(models["DeepSeek-V3"]["config"], "DeepSeek-V3");
  const double without = total_parameters(m);
  m.predicted = 1;
  EXPECT_NEAR((total_parameters(m) - without) / 1e9, 685 - 671 - 2 * 0.93, 0.6);
}

TEST(ParameterCount, OfMatricesIsWhatATokenMultiplies) {
  ModelShape m = test::llama(2, 64, 4, 2, 176, 512);
  EXPECT_EQ(matrix_parameters(m, false), 64.0 * (64 + 64 + 2 * 32 + 3 * 176));
  m.experts = 8;
  m.router_topk = 2;
  m.expert_ffn = 16;
  m.shared_ffn = 48;
  EXPECT_EQ(matrix_parameters(m, true), 64.0 * (64 + 64 + 2 * 32 + 3 * (2 * 16 + 48) + 8));
}

}  // namespace
}  // namespace megalith
