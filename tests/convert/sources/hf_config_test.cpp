#include "libcore/convert/sources/hf_config.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

Json golden(const char* name) {
  return Json::load(test::test_data(concat("convert/goldens/", name, "/config.json")));
}

Json without(Json json, const std::string& key) {
  std::erase_if(json.as_object(), [&](const Json::Member& member) { return member.first == key; });
  return json;
}

std::string refusal(const Json& json) {
  try {
    parse_hf_config(json, "config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return {};
}

// Reads the configurations that tools/golden/make_convert_goldens.py wrote.
TEST(HfConfig, ReadsGpt2) {
  const auto [family, c] = parse_hf_config(golden("gpt2"), "config.json");
  EXPECT_EQ(family, find_family("gpt2"));
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.hidden, 20);
  EXPECT_EQ(c.heads, 5);
  EXPECT_EQ(c.kv_channels, 4);
  EXPECT_EQ(c.kv_heads(), 5);
  EXPECT_EQ(c.ffn_hidden, 36);
  EXPECT_EQ(c.max_positions, 20);
  EXPECT_EQ(c.vocab_size, 300);
  EXPECT_EQ(c.norm_epsilon, 1e-6);
  EXPECT_EQ(c.activation(), ActivationFunction::kGeluTanh);
  EXPECT_TRUE(c.linear_bias && c.has_qkv_bias() && !c.untied_head);
  EXPECT_EQ(c.position, PositionEmbedding::kLearned);
}

TEST(HfConfig, ReadsLlama) {
  const auto [family, c] = parse_hf_config(golden("llama"), "config.json");
  EXPECT_EQ(family, find_family("llama"));
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.kv_heads(), 2);
  EXPECT_EQ(c.kv_channels, 8);
  EXPECT_EQ(c.heads, 6);
  EXPECT_EQ(c.rotary_base, 500);
  EXPECT_TRUE(c.swiglu);
  EXPECT_TRUE(!c.linear_bias && !c.has_qkv_bias() && c.untied_head);
}

TEST(HfConfig, ReadsQwen3) {
  const auto [family, c] = parse_hf_config(golden("families/qwen3"), "config.json");
  EXPECT_EQ(family, find_family("qwen3"));
  EXPECT_EQ(c.hidden, 16);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_channels, 8);  // not hidden / heads
  EXPECT_EQ(c.kv_heads(), 2);
  EXPECT_TRUE(c.qk_layernorm && c.swiglu);
  EXPECT_TRUE(!c.linear_bias && !c.has_qkv_bias() && !c.untied_head);
  EXPECT_EQ(c.sliding_window, 0);
  const Json json = without(golden("families/qwen3"), "head_dim");
  EXPECT_EQ(parse_hf_config(json, "x").config.kv_channels, 128);  // transformers' default
}

// The numbers are those of the classes of transformers 5.24, whose families differ.
TEST(HfConfig, TakesTransformersNumberOfKeyHeads) {
  for (const auto& [family, absent] :
       {std::pair{"llama", 64}, std::pair{"families/qwen2", 32}, std::pair{"families/mistral", 8},
        std::pair{"families/qwen3", 32}, std::pair{"families/smollm3", 4}}) {
    Json json = golden(family);
    json.set("num_attention_heads", 64);
    json.set("hidden_size", 128);
    json.set("num_key_value_heads", Json());
    EXPECT_EQ(parse_hf_config(json, "x").config.kv_heads(), 64) << family;
    EXPECT_EQ(parse_hf_config(without(json, "num_key_value_heads"), "x").config.kv_heads(), absent) << family;
  }
}

TEST(HfConfig, ReadsWhichLayersOfSmolLm3AreRotated) {
  Json json = golden("families/smollm3");
  const auto [family, c] = parse_hf_config(json, "config.json");
  EXPECT_EQ(family, find_family("smollm3"));
  EXPECT_TRUE(c.rotates(0) && !c.rotates(1) && c.rotates(2));
  EXPECT_EQ(c.rotary_base, 2e6);
  json.set("num_hidden_layers", 6);
  json.set("layer_types", Json());
  json.set("no_rope_layers", Json::Array{1, 1, 0, 1, 1, 0});
  EXPECT_EQ(parse_hf_config(json, "x").config.no_rope_freq, 3);
  json.set("no_rope_layers", Json::Array{1, 1, 1, 1, 1, 1});
  EXPECT_EQ(parse_hf_config(json, "x").config.no_rope_freq, 0);
  json.set("no_rope_layers", Json());
  EXPECT_EQ(parse_hf_config(json, "x").config.no_rope_freq, 2);
  json.set("no_rope_layer_interval", Json());
  EXPECT_EQ(parse_hf_config(json, "x").config.no_rope_freq, 4);  // transformers' default
}

TEST(HfConfig, ReadsPhi3) {
  const auto [family, c] = parse_hf_config(golden("families/phi4"), "config.json");
  EXPECT_EQ(family, find_family("phi3"));
  EXPECT_EQ(c.rotary_channels(), 6);
  EXPECT_EQ(c.rope_type, RopeType::kLongrope);
  EXPECT_EQ(c.rope_short_factors, "1,1.1,1.3");
  EXPECT_EQ(c.rope_long_factors, "1.5,2,6");
  EXPECT_EQ(c.rope_original_positions, 28);
  EXPECT_EQ(c.rope_factor, 32. / 28);
  EXPECT_TRUE(c.swiglu && !c.untied_head && !c.linear_bias && c.sliding_window == 0);
  const Json plain = golden("families/phi3");
  EXPECT_EQ(parse_hf_config(plain, "x").config.sliding_window, 5);
  EXPECT_EQ(parse_hf_config(without(plain, "sliding_window"), "x").config.sliding_window, 0);
}

// transformers 4 has the type "longrope", before that "su", in three members of "rope_scaling", and the part
// of each head outside.
TEST(HfConfig, ReadsPhi3AsOlderTransformersWroteIt) {
  Json json = golden("families/phi4");
  const ModelConfig newest = parse_hf_config(json, "x").config;
  json.set("rope_parameters", Json());
  json.set("rope_theta", 300.0);
  for (const char* type : {"longrope", "su"}) {
    json.set("rope_scaling", Json::Object{{"type", type},
                                          {"short_factor", Json::Array{1, 1.1, 1.3}},
                                          {"long_factor", Json::Array{1.5, 2, 6}}});
    EXPECT_EQ(to_json(parse_hf_config(json, "x").config), to_json(newest)) << type;
  }
}

TEST(HfConfig, ReadsStarcoder2) {
  const auto [family, c] = parse_hf_config(golden("families/starcoder2"), "config.json");
  EXPECT_EQ(family, find_family("starcoder2"));
  EXPECT_EQ(c.norm, Normalization::kLayerNorm);
  EXPECT_EQ(c.activation(), ActivationFunction::kGeluTanh);
  EXPECT_TRUE(!c.swiglu && c.linear_bias && c.has_qkv_bias() && !c.untied_head);
  EXPECT_EQ(c.kv_heads(), 2);
  Json json = golden("families/starcoder2");
  json.set("use_bias", false);
  EXPECT_FALSE(parse_hf_config(json, "x").config.linear_bias);
  EXPECT_EQ(hf_config(parse_hf_config(json, "x").config, DType::kF32, {})["use_bias"], Json(false));
}

TEST(HfConfig, ReadsStableLm) {
  const auto [family, c] = parse_hf_config(golden("families/stablelm"), "config.json");
  EXPECT_EQ(family, find_family("stablelm"));
  EXPECT_EQ(c.norm, Normalization::kLayerNorm);
  EXPECT_EQ(c.rotary_percent, 0.5);
  EXPECT_TRUE(c.swiglu && !c.linear_bias && c.has_qkv_bias() && c.untied_head);
  Json json = without(golden("families/stablelm"), "rope_parameters");
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_percent, 0.25);  // transformers' default
  json.set("partial_rotary_factor", 0.5);                             // transformers 4
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_percent, 0.5);
  EXPECT_FALSE(parse_hf_config(without(json, "use_qkv_bias"), "x").config.has_qkv_bias());
}

TEST(HfConfig, ReadsGptNeoX) {
  const auto [family, c] = parse_hf_config(golden("families/gpt_neox"), "config.json");
  EXPECT_EQ(family, find_family("gpt_neox"));
  EXPECT_TRUE(c.parallel_residual && c.linear_bias && c.untied_head && !c.swiglu);
  EXPECT_EQ(c.activation(), ActivationFunction::kGelu);
  EXPECT_EQ(c.kv_heads(), 4);
  Json json = without(golden("families/gpt_neox"), "rope_parameters");
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_percent, 0.25);  // transformers' default
  json.set("rotary_pct", 0.5);                                        // transformers 4, as Pythia's files
  json.set("rotary_emb_base", 500);
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_percent, 0.5);
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_base, 500);
  json.set("use_parallel_residual", false);
  EXPECT_FALSE(parse_hf_config(json, "x").config.parallel_residual);
}

// Two rows have this model_type: Falcon 40B's, with a norm for each branch, and Falcon 7B's.
TEST(HfConfig, ReadsBothFormsOfFalcon) {
  const auto [family, c] = parse_hf_config(golden("families/falcon"), "config.json");
  EXPECT_EQ(family, find_family("falcon"));
  EXPECT_TRUE(c.parallel_residual && !c.linear_bias && !c.untied_head && !c.swiglu);
  EXPECT_EQ(c.layer_norms(), 2);
  EXPECT_EQ(c.kv_heads(), 2);
  const auto [older, d] = parse_hf_config(golden("families/falcon_7b"), "config.json");
  EXPECT_NE(older, family);
  EXPECT_EQ(std::string(older->names.family), "falcon");
  EXPECT_EQ(d.layer_norms(), 1);
  EXPECT_EQ(d.kv_heads(), 1);
  EXPECT_EQ(&family_of(c), family);
  EXPECT_EQ(&family_of(d), older);
}

// Phi-3 without scaling computes what LLaMA does, and a Mistral without a window, too.
TEST(HfConfig, RemembersAFamilyThatTheConfigurationDoesNotTell) {
  Json phi3 = golden("families/phi3"), mistral = golden("families/mistral");
  phi3.set("sliding_window", Json());
  mistral.set("sliding_window", Json());
  for (const auto& [json, type] : {std::pair{&phi3, "phi3"}, std::pair{&mistral, "mistral"}}) {
    const ModelConfig config = parse_hf_config(*json, "x").config;
    EXPECT_EQ(config.hf_model_type, type);
    EXPECT_EQ(hf_config(config, DType::kF32, {})["model_type"], Json(type));
  }
  EXPECT_EQ(parse_hf_config(golden("llama"), "x").config.hf_model_type, std::nullopt);
  EXPECT_EQ(parse_hf_config(golden("families/phi4"), "x").config.hf_model_type, std::nullopt);
}

// transformers 5.24: Qwen2Config and Olmo3Config derive the types of layers that a file does not list.
TEST(HfConfig, ReadsWhichLayersHaveAWindow) {
  const auto windows = [](const Json& json) {
    const ModelConfig c = parse_hf_config(json, "x").config;
    std::string text;
    for (int layer = 0; layer < c.layers; ++layer) text += c.window_of(layer) > 0 ? 'w' : '-';
    return text;
  };
  EXPECT_EQ(windows(golden("families/qwen2_windows")), "-w");
  EXPECT_EQ(windows(golden("families/olmo3")), "www-");
  Json qwen2 = without(golden("families/qwen2_windows"), "layer_types");
  EXPECT_EQ(windows(qwen2), "-w");  // by max_window_layers
  qwen2.set("max_window_layers", 0);
  EXPECT_EQ(windows(qwen2), "ww");
  qwen2.set("max_window_layers", 2);
  EXPECT_EQ(windows(qwen2), "--");
  qwen2.set("layer_types", Json::Array{"sliding_attention", "full_attention"});  // it has precedence
  EXPECT_EQ(windows(qwen2), "w-");
  Json olmo3 = without(golden("families/olmo3"), "layer_types");
  olmo3.set("num_hidden_layers", 9);
  EXPECT_EQ(windows(olmo3), "www-www-w");
  EXPECT_EQ(parse_hf_config(without(olmo3, "sliding_window"), "x").config.sliding_window, 4096);
  olmo3.set("sliding_window", Json());
  EXPECT_EQ(windows(olmo3), "---------");
}

TEST(HfConfig, ReadsOlmo2) {
  const auto [family, c] = parse_hf_config(golden("families/olmo2"), "config.json");
  EXPECT_EQ(family, find_family("olmo2"));
  EXPECT_TRUE(c.qk_layernorm && c.qk_norm_all_heads && c.swiglu && c.untied_head);
  EXPECT_EQ(c.norm_placement, NormPlacement::kAfter);
  EXPECT_EQ(c.kv_channels, 4);
  EXPECT_EQ(c.kv_heads(), 2);
  EXPECT_EQ(parse_hf_config(without(golden("families/olmo2"), "num_key_value_heads"), "x").config.kv_heads(),
            4);
}

TEST(HfConfig, ReadsGranitesMultipliers) {
  const auto [family, c] = parse_hf_config(golden("families/granite"), "config.json");
  EXPECT_EQ(family, find_family("granite"));
  EXPECT_EQ(c.embedding_multiplier, 3);
  EXPECT_EQ(c.residual_multiplier, 0.6);
  EXPECT_EQ(c.attention_scale(), 0.3);
  EXPECT_EQ(c.logits_scaling, 2.5);
  const Json json = without(golden("families/granite"), "attention_multiplier");
  EXPECT_EQ(parse_hf_config(json, "x").config.attention_scale(), 1);  // transformers' default
}

// transformers gives OLMo 3's full layers "rope_theta", and the others the default.
TEST(HfConfig, ReadsOneRotationForBothTypesOfLayers) {
  Json json = without(golden("families/olmo3"), "rope_parameters");
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_base, 5e5);
  json.set("rope_theta", 500000);
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_base, 5e5);
  json.set("rope_theta", 777);
  EXPECT_NE(refusal(json).find("the rotation's \"rope_theta\" differs between the types of layers"),
            std::string::npos)
      << refusal(json);
  json.set("rope_scaling", Json::Object{{"rope_type", "yarn"}, {"factor", 8.0}});
  EXPECT_NE(refusal(json).find("\"rope_scaling\" scales the rotation of layers without a window only"),
            std::string::npos)
      << refusal(json);
}

TEST(HfConfig, ReadsTheRotaryBaseUnderBothNames) {
  Json json = golden("llama");
  json.set("rope_parameters", Json());
  json.set("rope_theta", 777.0);
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_base, 777);
  json.set("rope_parameters", Json::Object{{"rope_type", "default"}, {"rope_theta", 555}});
  EXPECT_EQ(parse_hf_config(json, "x").config.rotary_base, 555);
}

// transformers 5.24, modeling_rope_utils.py: standardize_rope_params().
TEST(HfConfig, ReadsTheOriginalContextOfTheFileBeforeThatOfTheRotation) {
  Json json = golden("llama");
  Json::Object rope{{"rope_type", "yarn"}, {"factor", 4.0}};
  const auto positions = [&] {
    json.set("rope_parameters", rope);
    return parse_hf_config(json, "x").config.rope_original_positions;
  };
  EXPECT_EQ(positions(), json["max_position_embeddings"].as_int());
  rope.push_back({"original_max_position_embeddings", 8});
  EXPECT_EQ(positions(), 8);
  json.set("original_max_position_embeddings", 4);
  EXPECT_EQ(positions(), 4);
}

// Members that a file leaves out must get transformers' own defaults.
TEST(HfConfig, FillsInWhatTransformersFillsIn) {
  const Json gpt2 =
      Json::Object{{"model_type", "gpt2"}, {"n_layer", 1}, {"n_embd", 12}, {"n_head", 3}, {"vocab_size", 5}};
  const ModelConfig a = parse_hf_config(gpt2, "x").config;
  EXPECT_EQ(a.ffn_hidden, 48);
  EXPECT_EQ(a.max_positions, 1024);
  EXPECT_EQ(a.norm_epsilon, 1e-5);
  EXPECT_FALSE(a.untied_head);
  const Json llama = Json::Object{{"model_type", "llama"},    {"num_hidden_layers", 1}, {"hidden_size", 12},
                                  {"num_attention_heads", 3}, {"intermediate_size", 7}, {"vocab_size", 5}};
  const ModelConfig b = parse_hf_config(llama, "x").config;
  EXPECT_EQ(b.kv_heads(), 3);
  EXPECT_EQ(b.kv_channels, 4);
  EXPECT_EQ(b.norm_epsilon, 1e-6);
  EXPECT_EQ(b.rotary_base, 10000);
  EXPECT_TRUE(b.untied_head);
}

TEST(HfConfig, RefusesByNameWhatItCannotCompute) {
  struct Case {
    const char* family;
    const char* key;
    Json value;
    const char* message;
  };
  const Json yarn = Json::Object{{"rope_type", "yarn"}, {"factor", 8.0}};
  const Json axial = Json::Object{{"rope_type", "axial"}};
  const auto longrope = [](Json list) {
    return Json(Json::Object{
        {"rope_type", "longrope"}, {"short_factor", Json::Array{1, 1, 1}}, {"long_factor", std::move(list)}});
  };
  for (const auto& [family, key, value, message] : {
           Case{"gpt2", "model_type", "bert",
                "\"bert\"; these can be read: gpt2, llama, qwen2, mistral, qwen3, smollm3, phi3, "
                "starcoder2, stablelm, gpt_neox, falcon, olmo2, olmo3, granite"},
           Case{"gpt2", "scale_attn_by_inverse_layer_idx", true, "true is not supported"},
           Case{"gpt2", "scale_attn_weights", false, "false is not supported"},
           Case{"gpt2", "add_cross_attention", true, "true is not supported"},
           Case{"gpt2", "n_head", 3, "not a multiple"},
           Case{"gpt2", "n_embd", "20", "wanted a positive integer"},
           Case{"gpt2", "n_layer", Json(), "has no \"n_layer\""},
           Case{"gpt2", "n_layer", int64_t{1} << 40, "wanted a positive integer"},
           Case{"gpt2", "n_layer", -1, "wanted a positive integer"},
           Case{"gpt2", "layer_norm_epsilon", "x", "wanted a number"},
           Case{"gpt2", "layer_norm_epsilon", 1e39,
                "\"layer_norm_epsilon\" 1e+39: wanted between -3.4e38 and 3.4e38"},
           Case{"gpt2", "attn_pdrop", 1, "--attention-dropout is 1, wanted less than 1"},
           Case{"gpt2", "resid_pdrop", 1, "--hidden-dropout is 1, wanted less than 1"},
           Case{"llama", "attention_dropout", 1, "--attention-dropout is 1, wanted less than 1"},
           Case{"llama", "head_dim", 7, "gives 7 rotated channels; wanted an even number"},
           Case{"gpt2", "tie_word_embeddings", 1, "wanted true or false"},
           Case{"gpt2", "quantization_config", Json::object(), "quantized"},
           Case{"llama", "rope_scaling", axial,
                "\"axial\" is not supported; default, linear, llama3, dynamic"},
           Case{"llama", "rope_parameters", axial, "\"axial\" is not supported"},
           Case{"llama", "rope_parameters", Json(Json::Object{{"rope_type", "dynamic"}}),
                "has no \"factor\""},
           Case{"llama", "rope_parameters",
                Json(Json::Object{{"rope_type", "yarn"}, {"factor", 4}, {"attention_factor", 0}}),
                "\"attention_factor\" is not positive"},
           Case{"families/phi4", "rope_parameters", yarn, "\"yarn\" is not supported in this family"},
           Case{"families/phi4", "rope_scaling", longrope(Json()), "has no \"long_factor\""},
           Case{"families/phi4", "rope_scaling", longrope(5), "\"long_factor\" is 5, wanted a list"},
           Case{"families/phi4", "rope_scaling", longrope(Json::Array{1, "x", 2}),
                "\"long_factor\" holds \"x\", wanted numbers"},
           Case{"families/phi4", "rope_parameters", Json::Object{{"partial_rotary_factor", 2}},
                "\"partial_rotary_factor\" 2: wanted between 0 and 1"},
           Case{"families/stablelm", "qk_layernorm", true, "true is not supported"},
           Case{"families/stablelm", "use_parallel_residual", true, "true is not supported"},
           Case{"families/gpt_neox", "attention_bias", false, "false is not supported"},
           Case{"families/falcon", "num_ln_in_parallel_attn", 1,
                "\"num_ln_in_parallel_attn\" 1 is not supported; 2 is"},
           Case{"families/falcon", "alibi", true, "true is not supported"},
           Case{"families/falcon_7b", "multi_query", false, "false is not supported"},
           Case{"families/falcon_7b", "parallel_attn", false, "false is not supported"},
           Case{"llama", "rope_scaling", Json(Json::Object{{"type", "linear"}, {"factor", 0}}),
                "not positive"},
           Case{"llama", "rope_parameters", Json(Json::Object{{"rope_type", "llama3"}, {"factor", 8}}),
                "has no \"low_freq_factor\""},
           Case{"llama", "rope_parameters", 5, "wanted an object"},
           Case{"llama", "hidden_act", "gelu", "\"gelu\" is not supported"},
           Case{"gpt2", "activation_function", "mish", "\"mish\" is not supported; these are: gelu_new, "},
           Case{"llama", "partial_rotary_factor", 0.5, "not supported"},
           Case{"llama", "mlp_bias", true, "differ"},
           Case{"llama", "num_key_value_heads", 4, "not a multiple"},
           Case{"families/smollm3", "no_rope_layers", Json::Array{0, 1},
                "\"no_rope_layers\" is [0, 1], wanted 1 for each of the 2 layers but every N-th"},
           Case{"families/smollm3", "use_sliding_window", true, "true is not supported"},
           Case{"families/smollm3", "layer_types", Json::Array{"full_attention", "sliding_attention"},
                "\"sliding_attention\", which is not supported"},
           Case{"families/qwen3", "rope_scaling", axial, "\"axial\" is not supported"},
           Case{"families/qwen3", "rope_parameters", Json::Object{{"partial_rotary_factor", 0.5}},
                "\"partial_rotary_factor\" other than 1"},
           Case{"families/qwen3", "rope_parameters", Json::Object{{"full_attention", yarn}},
                "a rotation for each type of layer (\"full_attention\")"},
           Case{"families/qwen3", "quantization_config", Json::object(), "the weights are quantized"},
           Case{"families/qwen3", "layer_types", Json::Array{"sliding_attention"},
                "\"sliding_attention\", which is not supported together with full attention"},
           Case{"families/qwen3", "attention_bias", true, "true is not supported"},
           Case{"families/olmo2", "attention_bias", true, "true is not supported"},
           Case{"families/olmo3", "layer_types",
                Json::Array{"full_attention", "full_attention", "sliding_attention", "full_attention"},
                "in a pattern that is not supported; these are: to all but every N-th layer"},
           Case{"families/olmo3", "layer_types", Json::Array{"full_attention"}, "wanted a list of 4 types"},
           Case{"families/olmo3", "layer_types",
                Json::Array{"chunked_attention", "full_attention", "full_attention", "full_attention"},
                "holds \"chunked_attention\", wanted sliding_attention or full_attention"},
       }) {
    Json json = golden(family);
    json.set(key, value);
    EXPECT_NE(refusal(json).find(message), std::string::npos) << key << ": " << refusal(json);
  }
}

// The names and what they mean: transformers/activations.py, ACT2FN.
TEST(HfConfig, ReadsAndWritesEachActivation) {
  using F = ActivationFunction;
  for (const auto& [name, function, written] :
       {std::tuple{"gelu", F::kGelu, "gelu"}, std::tuple{"gelu_python", F::kGelu, "gelu"},
        std::tuple{"gelu_new", F::kGeluTanh, "gelu_new"},
        std::tuple{"gelu_pytorch_tanh", F::kGeluTanh, "gelu_new"},
        std::tuple{"gelu_fast", F::kGeluTanh, "gelu_new"},
        std::tuple{"gelu_accurate", F::kGeluTanh, "gelu_new"},
        std::tuple{"quick_gelu", F::kQuickGelu, "quick_gelu"}, std::tuple{"silu", F::kSilu, "silu"},
        std::tuple{"swish", F::kSilu, "silu"}, std::tuple{"relu", F::kRelu, "relu"},
        std::tuple{"relu2", F::kSquaredRelu, "relu2"}}) {
    Json json = golden("gpt2");
    json.set("activation_function", name);
    const ModelConfig config = parse_hf_config(json, "x").config;
    EXPECT_EQ(config.activation(), function) << name;
    EXPECT_EQ(hf_config(config, DType::kF32, {})["activation_function"].as_string(), written);
  }
}

// The config.json that we write must be read back as the same model, and must match transformers' own file.
TEST(HfConfig, WritesWhatItReads) {
  for (const char* name : {"gpt2",
                           "llama",
                           "families/qwen2",
                           "families/mistral",
                           "families/llama3",
                           "families/linear",
                           "families/qwen3",
                           "families/smollm3",
                           "families/phi3",
                           "families/phi4",
                           "families/yarn",
                           "families/dynamic",
                           "families/starcoder2",
                           "families/stablelm",
                           "families/gpt_neox",
                           "families/falcon",
                           "families/falcon_7b",
                           "families/olmo2",
                           "families/olmo3",
                           "families/qwen2_windows",
                           "families/granite"}) {
    const Json theirs = golden(name);
    const ModelConfig config = parse_hf_config(theirs, name).config;
    const SpecialIds ids{theirs["bos_token_id"].as_int(), theirs["eos_token_id"].as_int()};
    const Json ours = hf_config(config, DType::kF32, ids);
    EXPECT_EQ(to_json(parse_hf_config(ours, name).config), to_json(config));
    for (const auto& [key, value] : ours.as_object()) {
      const Json* said = theirs.find(key);
      if (!said) {
        // members for transformers 4, which that file does not have
        const std::set<std::string> older = {"torch_dtype", "rope_theta",      "rope_scaling",
                                             "head_dim",    "rotary_emb_base", "partial_rotary_factor",
                                             "rotary_pct"};
        EXPECT_TRUE(older.contains(key)) << key;
        continue;
      }
      // Two members are not compared: rope_parameters has its members in another order, and max_window_layers
      // is left out if there is no window.
      if (key == "rope_parameters" || key == "max_window_layers") continue;
      if (value.is_number() && said->is_number())
        EXPECT_EQ(value.as_double(), said->as_double()) << key;
      else
        EXPECT_EQ(value.dump(), said->dump()) << key;
    }
  }
}

TEST(HfConfig, ReadsSlidingWindows) {
  Json mistral = golden("families/mistral");
  EXPECT_EQ(parse_hf_config(mistral, "x").config.sliding_window, 5);
  EXPECT_EQ(parse_hf_config(mistral, "x").config.seq_length, mistral["max_position_embeddings"].as_int());
  mistral.set("sliding_window", Json());
  EXPECT_EQ(parse_hf_config(mistral, "x").config.sliding_window, 0);
  mistral = without(mistral, "sliding_window");
  EXPECT_EQ(parse_hf_config(mistral, "x").config.sliding_window, 4096);  // transformers' default
}

TEST(HfConfig, ReadsWindowsThatAFlagSwitchesOn) {
  Json qwen2 = golden("families/qwen2");
  qwen2.set("sliding_window", 8);
  EXPECT_EQ(parse_hf_config(qwen2, "x").config.sliding_window, 0);
  // there is still no window, since max_window_layers excludes all layers
  qwen2.set("use_sliding_window", true);
  EXPECT_EQ(parse_hf_config(qwen2, "x").config.sliding_window, 0);
  // absent, it is 28 in transformers
  EXPECT_EQ(parse_hf_config(without(qwen2, "max_window_layers"), "x").config.sliding_window, 0);
  qwen2.set("max_window_layers", "x");
  EXPECT_NE(refusal(qwen2).find("\"max_window_layers\" is \"x\""), std::string::npos);
  qwen2.set("max_window_layers", 0);
  EXPECT_EQ(parse_hf_config(qwen2, "x").config.sliding_window, 0);  // by "layer_types", which has precedence
  qwen2.set("layer_types", Json());
  EXPECT_EQ(parse_hf_config(qwen2, "x").config.sliding_window, 8);
  EXPECT_EQ(parse_hf_config(without(qwen2, "sliding_window"), "x").config.sliding_window, 4096);
  qwen2.set("num_hidden_layers", 29);
  EXPECT_EQ(parse_hf_config(without(qwen2, "max_window_layers"), "x").config.full_layers, 28);
}

TEST(HfConfig, SaysWhatRulesOutEachFamily) {
  ModelConfig c = parse_hf_config(golden("gpt2"), "x").config;
  c.norm = Normalization::kRmsNorm;
  c.qkv_bias = false;
  try {
    family_of(c);
    FAIL();
  } catch (const Error& error) {
    const std::string said = error.what();
    for (const char* part :
         {"no Hugging Face model known here computes what this one does: GPT-2 is ruled out by "
          "--normalization "
          "RMSNorm; LLaMA, SmolLM3 and Granite are ruled out by --position-embedding-type learned_absolute, "
          "no "
          "--swiglu, "
          "--no-add-qkv-bias with --add-bias-linear; Qwen2 is ruled out by ",
          "Mistral and Phi-3 are ruled out by --position-embedding-type learned_absolute, no --swiglu, "
          "--add-bias-linear; ",
          "Qwen3 is ruled out by --position-embedding-type learned_absolute, no --swiglu, no --qk-layernorm, "
          "--add-bias-linear"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace megalith
