#include "libcore/plan/shape/hf_shape.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/json/small_json.h"

namespace megalith {
namespace {

Json published(const char* name) {
  return load_small(MEGALITH_SOURCE_DIR "/docs/mixtures.json")["models"][name]["config"];
}
ModelShape shape(const char* name) {
  return parse_hf_shape(published(name), "config.json");
}
std::string refusal(const Json& json) {
  try {
    parse_hf_shape(json, "config.json");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    return e.what();
  }
  return "";
}

TEST(HfShape, ReadsMixtral) {
  const ModelShape m = shape("Mixtral-8x7B");
  EXPECT_EQ(m.expert_count(), 8);
  EXPECT_EQ(m.router_topk, 2);
  EXPECT_EQ(m.expert_ffn, 14336);
  EXPECT_EQ(m.shared_ffn, 0);
  EXPECT_EQ(m.kv_heads(), 8);
  EXPECT_EQ(m.seq_length, 32768);
  EXPECT_FALSE(m.qk_layernorm);
}

TEST(HfShape, ReadsQwensSharedExpertsAndNorms) {
  const ModelShape two = shape("Qwen2-57B-A14B");
  EXPECT_EQ(two.shared_ffn, 20480);
  EXPECT_TRUE(two.shared_gate);
  EXPECT_TRUE(two.has_qkv_bias());
  const ModelShape three = shape("Qwen3-30B-A3B");
  EXPECT_TRUE(three.qk_layernorm);
  EXPECT_EQ(three.kv_channels, 128);
  EXPECT_EQ(three.expert_ffn, 768);
  EXPECT_EQ(three.layer_freq, "1");
}

TEST(HfShape, ReadsWhichLayersAreDense) {
  Json json = published("Qwen3-30B-A3B");
  json.set("decoder_sparse_step", 2);  // transformers: layers 1, 3, 5 … have experts
  EXPECT_EQ(parse_hf_shape(json, "x").plain_layers(48), 24);
  EXPECT_EQ(parse_hf_shape(json, "x").plain_layers(0, 1), 1);
  json.set("decoder_sparse_step", 1);
  json.set("mlp_only_layers", Json::Array{0, 47});
  EXPECT_EQ(parse_hf_shape(json, "x").layer_freq, "([0]*1+[1]*46+[0]*1)");
  json.set("mlp_only_layers", Json::Array{48});
  EXPECT_NE(refusal(json).find("\"mlp_only_layers\" holds 48, which is no layer of 48"), std::string::npos);
}

TEST(HfShape, ReadsGptOss) {
  const ModelShape m = shape("GPT-OSS-120B");
  EXPECT_EQ(m.expert_count(), 128);
  EXPECT_EQ(m.router_topk, 4);
  EXPECT_TRUE(m.linear_bias);
  EXPECT_EQ(m.heads * m.kv_channels, 4096);
}

TEST(HfShape, ReadsDeepSeeksAttentionAndDenseLayers) {
  const ModelShape m = shape("DeepSeek-V3");
  EXPECT_TRUE(m.latent_attention);
  EXPECT_EQ(m.query_rank, 1536);
  EXPECT_EQ(m.key_rank, 512);
  EXPECT_EQ(m.query_channels(), 192);
  EXPECT_EQ(m.output_channels(), 128);
  EXPECT_EQ(m.layer_freq, "([0]*3+[1]*58)");
  EXPECT_EQ(m.plain_layers(61), 3);
  EXPECT_TRUE(m.expert_bias);
  EXPECT_EQ(shape("DeepSeek-V2").shared_ffn, 3072);
  EXPECT_EQ(shape("DeepSeek-V2-Lite").query_rank, 0);
}

// What is stored of the weights, and how long positions are reached, is nothing to a plan.
TEST(HfShape, TakesQuantizedWeightsAndScaledPositions) {
  Json json = published("DeepSeek-V3");
  Json rope = Json::object();
  rope.set("type", "yarn");
  rope.set("factor", 40);
  json.set("rope_scaling", std::move(rope));
  Json fp8 = Json::object();
  fp8.set("quant_method", "fp8");
  json.set("quantization_config", std::move(fp8));
  EXPECT_EQ(to_json(parse_hf_shape(json, "x")), to_json(shape("DeepSeek-V3")));
}

TEST(HfShape, NamesWhatIsMissingOrUnknown) {
  Json json = published("Mixtral-8x7B");
  json.set("num_local_experts", Json());
  EXPECT_NE(refusal(json).find("config.json: has no \"num_local_experts\""), std::string::npos);
  json = published("DeepSeek-V3");
  json.set("moe_layer_freq", 2);
  EXPECT_NE(refusal(json).find("\"moe_layer_freq\" other than 1"), std::string::npos);
  json.set("moe_layer_freq", 1);
  json.set("first_k_dense_replace", 62);
  EXPECT_NE(refusal(json).find("\"first_k_dense_replace\" is 62"), std::string::npos);
  json = published("Mixtral-8x7B");
  json.set("model_type", "jamba");
  EXPECT_NE(refusal(json).find("\"model_type\" is \"jamba\"; planned are gpt2, llama"), std::string::npos);
}

}  // namespace
}  // namespace megalith
