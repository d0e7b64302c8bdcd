#include "libcore/plan/shape/hf_shape.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/json/small_json.h"
#include "tests/support/files.h"

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
  EXPECT_NE(refusal(json).find("\"mlp_only_layers\" holds 48, which is not one of the 48 layers"),
            std::string::npos);
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

// The defaults of num_experts_per_tok in transformers 5.23: MixtralConfig, Qwen2MoeConfig, Qwen3MoeConfig,
// GptOssConfig and DeepseekV3Config have a number; DeepseekV2Config has None.
TEST(HfShape, TakesEachFamilysOwnNumberOfExpertsOfAToken) {
  const std::pair<const char*, int> families[] = {{"Mixtral-8x7B", 2},  {"Qwen2-57B-A14B", 4},
                                                  {"Qwen3-30B-A3B", 8}, {"GPT-OSS-120B", 4},
                                                  {"DeepSeek-V3", 8},   {"Kimi-K2", 8}};
  for (const auto& [name, each] : families) {
    Json json = published(name);
    json.set("num_experts_per_tok", Json());
    EXPECT_EQ(parse_hf_shape(json, "config.json").router_topk, each) << name;
    json.set("num_experts_per_tok", 3);
    EXPECT_EQ(parse_hf_shape(json, "config.json").router_topk, 3) << name;
  }
  Json json = published("DeepSeek-V2");
  json.set("num_experts_per_tok", Json());
  EXPECT_NE(refusal(json).find("config.json: has no \"num_experts_per_tok\""), std::string::npos);
  json = published("GPT-OSS-20B");
  json.set("num_experts_per_tok", Json());
  json.set("experts_per_token", 6);
  EXPECT_EQ(parse_hf_shape(json, "config.json").router_topk, 6);
}

// The defaults of first_k_dense_replace, q_lora_rank and n_shared_experts in transformers' DeepSeek classes.
TEST(HfShape, TakesDeepSeeksDefaultsForWhatAFileLeavesOut) {
  const auto without = [](const char* name) {
    const Json whole = published(name);
    Json json = Json::object();
    for (const auto& [key, value] : whole.as_object())
      if (key != "first_k_dense_replace" && key != "q_lora_rank" && key != "n_shared_experts")
        json.set(key, value);
    return parse_hf_shape(json, "config.json");
  };
  EXPECT_EQ(to_json(without("DeepSeek-V3")), to_json(shape("DeepSeek-V3")));
  EXPECT_EQ(without("DeepSeek-V2-Lite").layer_freq, "1");
  EXPECT_EQ(without("DeepSeek-V2-Lite").query_rank, 1536);
  EXPECT_EQ(without("DeepSeek-V2-Lite").shared_ffn, 2 * 1408);
}

TEST(HfShape, RefusesWhatIsNoNumberOrTooLarge) {
  const auto refused = [](const char* model, const char* key, Json value) {
    Json json = published(model);
    json.set(key, std::move(value));
    return refusal(json);
  };
  EXPECT_EQ(refused("DeepSeek-V3", "first_k_dense_replace", "3"),
            "config.json: \"first_k_dense_replace\" is \"3\", wanted an integer from 0 to 61");
  EXPECT_EQ(refused("DeepSeek-V3", "first_k_dense_replace", 3.0),
            "config.json: \"first_k_dense_replace\" is 3.0, wanted an integer from 0 to 61");
  EXPECT_EQ(refused("Qwen3-30B-A3B", "mlp_only_layers", "1"),
            "config.json: \"mlp_only_layers\" is \"1\", wanted a list of layers");
  EXPECT_EQ(refused("DeepSeek-V3", "q_lora_rank", false),
            "config.json: \"q_lora_rank\" is false, wanted an integer from 0 to 16777216");
  EXPECT_EQ(refused("DeepSeek-V3", "n_shared_experts", 65536),
            "config.json: \"n_shared_experts\" 65536 times \"moe_intermediate_size\" 2048 are more than "
            "16777216 columns");
  for (const char* model : {"DeepSeek-V3", "Qwen3-30B-A3B", "Mixtral-8x7B", "GPT-OSS-20B"})
    EXPECT_EQ(refused(model, "num_hidden_layers", 1000000000),
              "config.json: \"num_hidden_layers\" is 1000000000, wanted 65536 layers at most");
}

// DeepSeek-V3's config.json: 4 of 8 groups, scores by a sigmoid, a bias for balance; Kimi K2 has one group,
// and so has V2 without its device-limited routing.
TEST(HfShape, ReadsDeepSeeksRouter) {
  Json json = published("DeepSeek-V3");
  EXPECT_EQ(shape("DeepSeek-V3").router_groups, 8) << "of DeepseekV3Config";
  EXPECT_EQ(shape("DeepSeek-V3").group_topk, 4);
  json.set("n_group", 16);
  json.set("topk_group", 2);
  json.set("scoring_func", "sigmoid");
  const ModelShape m = parse_hf_shape(json, "config.json");
  EXPECT_EQ(m.router_groups, 16);
  EXPECT_EQ(m.group_topk, 2);
  EXPECT_EQ(m.score_function, "sigmoid");
  EXPECT_FALSE(shape("DeepSeek-V2").router_groups);
  EXPECT_FALSE(shape("Kimi-K2").router_groups);
  json = published("DeepSeek-V2");
  json.set("topk_method", "group_limited_greedy");
  json.set("n_group", 8);
  json.set("topk_group", 3);
  EXPECT_EQ(parse_hf_shape(json, "config.json").group_topk, 3);
}

// A plan depends neither on the quantization of stored weights nor on the scaling of long positions.
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

// The golden is a file of transformers.
TEST(HfShape, ReadsDenseQwen3AsItIsTrained) {
  Json json = Json::load(test::test_data("convert/goldens/families/qwen3/config.json"));
  json.set("quantization_config", Json::Object{{"quant_method", "fp8"}});
  const ModelShape m = parse_hf_shape(json, "config.json");
  EXPECT_TRUE(m.qk_layernorm);
  EXPECT_EQ(m.kv_channels, 8);
  EXPECT_FALSE(m.untied_head);
  EXPECT_EQ(beyond_our_trainer(m), "");
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
  EXPECT_NE(refusal(json).find("\"first_k_dense_replace\" is 62, wanted an integer from 0 to 61"),
            std::string::npos);
  json = published("Mixtral-8x7B");
  json.set("model_type", "jamba");
  EXPECT_NE(refusal(json).find("\"model_type\" is \"jamba\"; plans are made for gpt2, llama"),
            std::string::npos);
}

}  // namespace
}  // namespace megalith
