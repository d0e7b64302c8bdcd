#include <utility>

#include "libcore/checkpoint/families/family.h"

namespace megalith {
namespace {

constexpr ConfigKeys kGpt2Keys = {.layers = "n_layer",
                                  .hidden = "n_embd",
                                  .heads = "n_head",
                                  .ffn = "n_inner",
                                  .positions = "n_positions",
                                  .epsilon = "layer_norm_epsilon",
                                  .activation = "activation_function",
                                  .attention_dropout = "attn_pdrop",
                                  .older_positions = "n_ctx",
                                  .hidden_dropout = "resid_pdrop",
                                  .embedding_dropout = "embd_pdrop"};
constexpr ConfigKeys kLlamaKeys = {.layers = "num_hidden_layers",
                                   .hidden = "hidden_size",
                                   .heads = "num_attention_heads",
                                   .ffn = "intermediate_size",
                                   .positions = "max_position_embeddings",
                                   .epsilon = "rms_norm_eps",
                                   .activation = "hidden_act",
                                   .attention_dropout = "attention_dropout",
                                   .groups = "num_key_value_heads",
                                   .head = "head_dim"};

/// LLaMA's keys with another one for the norms' epsilon, and for dropout if there is any.
constexpr ConfigKeys keys_like_llama(const char* epsilon, const char* hidden_dropout,
                                     const char* embedding_dropout = nullptr) {
  ConfigKeys keys = kLlamaKeys;
  keys.epsilon = epsilon;
  keys.head = nullptr;
  keys.hidden_dropout = hidden_dropout;
  keys.embedding_dropout = embedding_dropout;
  return keys;
}
constexpr ConfigKeys kPhi3Keys = keys_like_llama("rms_norm_eps", "resid_pdrop", "embd_pdrop");
constexpr ConfigKeys kStarcoder2Keys =
    keys_like_llama("norm_epsilon", "residual_dropout", "embedding_dropout");
constexpr ConfigKeys kStableLmKeys = keys_like_llama("layer_norm_eps", "hidden_dropout");
constexpr ConfigKeys kGptNeoXKeys = [] {
  ConfigKeys keys = keys_like_llama("layer_norm_eps", "hidden_dropout");
  keys.groups = nullptr;
  return keys;
}();
constexpr ConfigKeys kFalconKeys = {.layers = "num_hidden_layers",
                                    .hidden = "hidden_size",
                                    .heads = "num_attention_heads",
                                    .ffn = "ffn_hidden_size",
                                    .positions = "max_position_embeddings",
                                    .epsilon = "layer_norm_epsilon",
                                    .activation = "activation",
                                    .attention_dropout = "attention_dropout",
                                    .groups = "num_kv_heads",
                                    .hidden_dropout = "hidden_dropout"};
constexpr ConfigKeys kOlderFalconKeys = [] {
  ConfigKeys keys = kFalconKeys;
  keys.groups = nullptr;
  return keys;
}();

/// A family with the tensor names of another one.
NameMap named_like(NameMap names, const char* family, const char* architecture) {
  names.family = family;
  names.architecture = architecture;
  return names;
}

/// A row with LLaMA's parts, which other families change.
Family llama(const char* title, NameMap names, int positions) {
  return {.title = title,
          .names = std::move(names),
          .keys = &kLlamaKeys,
          .defaults = {.positions = positions, .epsilon = 1e-6, .activation = "silu"},
          .position = PositionEmbedding::kRope,
          .norm = Normalization::kRmsNorm,
          .gated = true};
}

Family gpt2_row() {
  return {.title = "GPT-2",
          .names = gpt2_names(),
          .keys = &kGpt2Keys,
          .defaults =
              {.positions = 1024, .epsilon = 1e-5, .activation = "gelu_new", .dropout = 0.1, .tied = true},
          .position = PositionEmbedding::kLearned,
          .norm = Normalization::kLayerNorm,
          .gated = false,
          .biases = BiasRule::kAll,
          .fixed = {{"scale_attn_weights", true},
                    {"scale_attn_by_inverse_layer_idx", false},
                    {"add_cross_attention", false}},
          .gguf = {.architecture = "gpt2", .joined = true}};
}

Family llama_row() {
  Family row = llama("LLaMA", llama_names(), 2048);
  row.biases = BiasRule::kByFlags;
  row.gguf = {.architecture = "llama", .neighbours = true};
  return row;
}

Family qwen2_row() {
  Family row = llama("Qwen2", named_like(llama_names(), "qwen2", "Qwen2ForCausalLM"), 32768);
  row.defaults.groups = 32;
  row.biases = BiasRule::kQkv;
  row.window = WindowRule::kByFlag;
  row.gguf = {.architecture = "qwen2"};
  row.tokenizer_rules = "qwen2";
  return row;
}

Family mistral_row() {
  Family row = llama("Mistral", named_like(llama_names(), "mistral", "MistralForCausalLM"), 131072);
  row.defaults.groups = 8;
  row.window = WindowRule::kAll;
  row.gguf = {.architecture = "llama", .neighbours = true};
  return row;
}

Family qwen3_row() {
  Family row = llama("Qwen3", named_like(llama_names(), "qwen3", "Qwen3ForCausalLM"), 32768);
  row.defaults.head = 128;
  row.defaults.groups = 32;
  row.head_norms = true;
  row.window = WindowRule::kByFlag;
  row.fixed = {{"attention_bias", false}};
  row.gguf = {.architecture = "qwen3"};
  row.tokenizer_rules = "qwen2";
  return row;
}

Family smollm3_row() {
  Family row = llama("SmolLM3", named_like(llama_names(), "smollm3", "SmolLM3ForCausalLM"), 32768);
  row.defaults.tied = row.defaults.pads = true;
  row.defaults.rotary_base = 2e6;
  row.defaults.groups = 4;
  row.no_rope_interval = 4;
  row.biases = BiasRule::kByFlags;
  row.fixed = {{"use_sliding_window", false}};
  return row;
}

Family phi3_row() {
  Family row = llama("Phi-3", phi3_names(), 4096);
  row.keys = &kPhi3Keys;
  row.defaults.epsilon = 1e-5;
  row.defaults.window = 0;
  row.window = WindowRule::kAll;
  row.rotation = {.share = "partial_rotary_factor", .original_positions = 4096};
  return row;
}

Family starcoder2_row() {
  Family row = llama("StarCoder2", starcoder2_names(), 4096);
  row.keys = &kStarcoder2Keys;
  row.defaults = {.positions = 4096,
                  .epsilon = 1e-5,
                  .activation = "gelu_pytorch_tanh",
                  .tied = true,
                  .groups = 2,
                  .window = 0};
  row.norm = Normalization::kLayerNorm;
  row.gated = false;
  row.biases = BiasRule::kByFlag;
  row.bias_flag = {"use_bias", true};
  row.window = WindowRule::kAll;
  return row;
}

Family stablelm_row() {
  Family row = llama("StableLM", named_like(llama_names(), "stablelm", "StableLmForCausalLM"), 4096);
  row.keys = &kStableLmKeys;
  row.defaults.epsilon = 1e-5;
  row.defaults.groups = 32;
  row.norm = Normalization::kLayerNorm;
  row.biases = BiasRule::kQkvByFlag;
  row.bias_flag = {"use_qkv_bias", false};
  row.rotation = {.share = "partial_rotary_factor", .default_share = 0.25};
  row.fixed = {{"qk_layernorm", false}, {"use_parallel_residual", false}};
  return row;
}

Family gpt_neox_row() {
  Family row = llama("GPT-NeoX", gpt_neox_names(), 2048);
  row.keys = &kGptNeoXKeys;
  row.defaults.epsilon = 1e-5;
  row.defaults.activation = "gelu";
  row.norm = Normalization::kLayerNorm;
  row.gated = false;
  row.biases = BiasRule::kAll;
  row.rotation = {.share = "rotary_pct", .default_share = 0.25, .base = "rotary_emb_base"};
  row.parallel = {"use_parallel_residual", true};
  row.fixed = {{"attention_bias", true}};
  return row;
}

// Falcon 40B and 180B.
Family falcon_row() {
  return {.title = "Falcon",
          .names = falcon_names(2),
          .keys = &kFalconKeys,
          .defaults = {.positions = 2048, .epsilon = 1e-5, .activation = "gelu", .tied = true},
          .position = PositionEmbedding::kRope,
          .norm = Normalization::kLayerNorm,
          .gated = false,
          .biases = BiasRule::kByFlag,
          .fixed = {{"alibi", false}},
          .bias_flag = {"bias", false},
          .parallel = {nullptr, true},
          .fixed_counts = {{"num_ln_in_parallel_attn", 2}},
          .variant = {"new_decoder_architecture", true}};
}

// Falcon 7B: one norm, and one key and value for all heads.
Family older_falcon_row() {
  Family row = falcon_row();
  row.names = falcon_names(1);
  row.keys = &kOlderFalconKeys;
  row.fixed = {{"alibi", false}, {"multi_query", true}, {"parallel_attn", true}};
  row.parallel_norms = 1;
  row.one_group = true;
  row.fixed_counts = {{"num_ln_in_parallel_attn", 1}};
  row.variant = {"new_decoder_architecture", false};
  return row;
}

Family olmo2_row() {
  Family row = llama("OLMo 2", olmo2_names(), 2048);
  row.defaults.epsilon = 1e-5;
  row.defaults.pads = true;
  row.head_norms = row.joint_norms = true;
  row.norm_places = NormPlacement::kAfter;
  row.fixed = {{"attention_bias", false}};
  row.gguf = {.architecture = "olmo2"};
  return row;
}

Family olmo3_row() {
  Family row = olmo2_row();
  row.title = "OLMo 3";
  row.names = named_like(olmo2_names(), "olmo3", "Olmo3ForCausalLM");
  row.defaults.rotary_base = 5e5;
  row.window = WindowRule::kByType;
  row.full_interval = 4;
  row.rope_by_type = true;
  row.gguf = {};
  return row;
}

Family granite_row() {
  Family row = llama("Granite", named_like(llama_names(), "granite", "GraniteForCausalLM"), 2048);
  row.biases = BiasRule::kByFlags;
  row.multipliers = true;
  row.gguf = {.architecture = "granite", .neighbours = true};
  return row;
}

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> kRows = {gpt2_row(),     llama_row(),    qwen2_row(),  mistral_row(),
                                            qwen3_row(),    smollm3_row(),  phi3_row(),   starcoder2_row(),
                                            stablelm_row(), gpt_neox_row(), falcon_row(), older_falcon_row(),
                                            olmo2_row(),    olmo3_row(),    granite_row()};
  return kRows;
}

}  // namespace megalith
