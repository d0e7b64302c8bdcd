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
  static const std::vector<Family> kRows = {gpt2_row(),    llama_row(), qwen2_row(),
                                            mistral_row(), qwen3_row(), smollm3_row(),
                                            olmo2_row(),   olmo3_row(), granite_row()};
  return kRows;
}

}  // namespace megalith
