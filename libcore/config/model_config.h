#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/ops/activation_function.h"
#include "libcore/options/fields.h"

namespace megalith {

enum class PositionEmbedding { kLearned, kRope, kNone };
enum class Normalization { kLayerNorm, kRmsNorm };
/// How rotary angles are stretched for texts longer than those of the first training, by Hugging Face's
/// names.
enum class RopeType { kDefault, kDynamic, kYarn, kLongrope };

inline std::vector<EnumName<PositionEmbedding>> enum_names(PositionEmbedding) {
  return {{"learned_absolute", PositionEmbedding::kLearned},
          {"rope", PositionEmbedding::kRope},
          {"none", PositionEmbedding::kNone}};
}
inline std::vector<EnumName<Normalization>> enum_names(Normalization) {
  return {{"LayerNorm", Normalization::kLayerNorm}, {"RMSNorm", Normalization::kRmsNorm}};
}
inline std::vector<EnumName<RopeType>> enum_names(RopeType) {
  return {{"default", RopeType::kDefault},
          {"dynamic", RopeType::kDynamic},
          {"yarn", RopeType::kYarn},
          {"longrope", RopeType::kLongrope}};
}

/// Where a layer has norms: before attention and feed-forward block, after them (of what is added to the
/// residual stream), or both.
enum class NormPlacement : uint8_t { kBefore, kAfter, kBoth };
inline std::vector<EnumName<NormPlacement>> enum_names(NormPlacement) {
  return {
      {"before", NormPlacement::kBefore}, {"after", NormPlacement::kAfter}, {"both", NormPlacement::kBoth}};
}

/// The shape of the transformer: GPT-2 and LLaMA are two settings of it. Names and defaults are Megatron's.
/// Where 0 means "derived", finish() sets the value.
struct ModelConfig {
  int layers = 0, hidden = 0, heads = 0;
  int ffn_hidden = 0;        // derived: 4 * hidden, or for SwiGLU int(8 * hidden / 3 / 64) * 64
  int kv_channels = 0;       // size of one head; derived: hidden / heads
  bool group_query = false;  // query heads share the key/value heads of query_groups groups
  int query_groups = 1;      // key/value heads; finish() sets it to heads unless group_query
  int seq_length = 0;        // tokens of a sample
  int max_positions = 0;     // rows of the position table; derived: seq_length
  PositionEmbedding position = PositionEmbedding::kLearned;
  double rotary_base = 10000, rotary_percent = 1;
  double rotary_interpolation = 1;  // positions are divided by it (Hugging Face's rope_type "linear")
  bool rope_scaling = false;        // stretches long waves as LLaMA 3.1 does (rope_type "llama3")
  double rope_factor = 8, rope_low_freq = 1, rope_high_freq = 4;
  int rope_original_positions = 8192;
  RopeType rope_type = RopeType::kDefault;
  double rope_attention_factor =
      0;  // of rotated heads, with yarn and longrope; 0: as transformers derives it
  double rope_beta_fast = 32, rope_beta_slow = 1;     // yarn: turns between which stretching grows
  bool rope_truncate = true;                          // yarn: the pairs with these turns are rounded outwards
  std::string rope_short_factors, rope_long_factors;  // longrope: a number for each pair, with commas
  int no_rope_freq = 0;      // layers N, 2N, … of this N are not rotated; 0: all are
  int sliding_window = 0;    // number of tokens that a token sees, itself included; 0: all before it
  int window_skip_freq = 0;  // layers N, 2N, … of this N have no window; 0: all have it
  int full_layers = 0;       // the first layers, which have no window
  Normalization norm = Normalization::kLayerNorm;
  double norm_epsilon = 1e-5;
  bool swiglu = false, openai_gelu = false, squared_relu = false;
  /// GELU in its tanh form, as in Megatron's fused kernel; false: the exact GELU.
  bool bias_gelu_fusion = true;
  std::optional<std::string> hidden_act;  // the activation by its name; unset: the flags above say it
  bool linear_bias = true;                // biases of all four linear layers
  std::optional<bool> qkv_bias;           // bias of the QKV projection; derived: linear_bias
  bool qk_layernorm = false;              // each head of queries and keys is normalized before the rotation
  bool qk_norm_all_heads = false;  // all heads of queries are normalized as one, and so are those of keys
  NormPlacement norm_placement = NormPlacement::kBefore;
  double embedding_multiplier = 1;  // factor of the embedding
  double residual_multiplier = 1;   // factor of what a branch adds to the residual stream
  double attention_multiplier = 0;  // factor of q·k; 0: 1/sqrt(kv_channels)
  double logits_scaling = 1;        // logits are divided by it
  bool untied_head = false;         // the LM head has its own weight
  bool parallel_residual = false;   // the MLP reads the block's input, not the attention's sum
  int parallel_norms = 2;           // 1: both branches of such a block read the same norm
  double attention_dropout = 0.1, hidden_dropout = 0.1;
  double init_std = 0.02;
  int vocab_divisor = 128;  // the vocabulary is padded to a multiple of this times the tensor-parallel size
  int64_t vocab_size = 0;   // ids without padding; 0: from the tokenizer
  /// config.json's "model_type" of an export; unset: the first family that can express the model.
  std::optional<std::string> hf_model_type;
  // Declared only so that they can be rejected by name.
  bool use_rotary = false, layernorm_1p = false, rotary_interleaved = false;
  std::optional<int> experts;

  template <class V>
  void fields(V&& v) {
    common_fields(v);
    v("num-experts", experts, "Refused: mixtures of experts are not supported.", unlisted());
  }
  /// The fields that a model which is only planned (plan/shape/model_shape.h) shares with one that is
  /// trained.
  template <class V>
  void common_fields(V&& v) {
    v("num-layers", layers, "Transformer layers.", at_least(1));
    v("hidden-size", hidden, "Width of the residual stream.", between(1, 1 << 20));
    v("ffn-hidden-size", ffn_hidden, "Inner width of the feed-forward block.", between(0, 1 << 24),
      default_text("4 * hidden-size; with --swiglu 8/3 of it, rounded down to a multiple of 64"));
    v("num-attention-heads", heads, "Attention heads.", between(1, 1 << 16));
    v("kv-channels", kv_channels, "Size of one head.", between(0, 1 << 16),
      default_text("hidden-size / num-attention-heads"));
    v("group-query-attention", group_query,
      "Share key/value heads between query heads (see --num-query-groups).");
    v("num-query-groups", query_groups, "Key/value heads with --group-query-attention.", at_least(1));
    v("seq-length", seq_length, "Tokens of a training sample.", at_least(1), alias({"max-seq-length"}));
    v("max-position-embeddings", max_positions, "Longest sequence that the position table holds.",
      at_least(0), default_text("seq-length"));
    v("position-embedding-type", position, "How positions are encoded.");
    v("rotary-base", rotary_base, "Base of the rotary angles.", positive());
    v("rotary-percent", rotary_percent, "Share of each head that is rotated.", between(0, 1));
    v("rotary-seq-len-interpolation-factor", rotary_interpolation, "Divide rotary positions by this.",
      positive());
    v("use-rope-scaling", rope_scaling, "Stretch long rotary waves as LLaMA 3.1 does.");
    v("rope-scaling-factor", rope_factor, "By how much --use-rope-scaling stretches.", positive());
    v("rope-scaling-low-freq-factor", rope_low_freq,
      "Waves longer than the original context over this are stretched fully.", positive());
    v("rope-scaling-high-freq-factor", rope_high_freq,
      "Waves shorter than the original context over this are unchanged.", positive());
    v("rope-scaling-original-positions", rope_original_positions,
      "The original context for --use-rope-scaling and --rope-scaling-type.", at_least(1));
    v("rope-scaling-type", rope_type,
      "How rotary angles are stretched beyond the original context, by Hugging Face's name; its linear and "
      "llama3 have the options above.");
    v("rope-attention-factor", rope_attention_factor,
      "Factor of rotated heads with --rope-scaling-type yarn or longrope.", between(0, 1 << 20),
      default_text("as transformers derives it from --rope-scaling-factor"));
    v("rope-beta-fast", rope_beta_fast,
      "With yarn, pairs that turn more often within the original context are not stretched.", positive());
    v("rope-beta-slow", rope_beta_slow,
      "With yarn, pairs that turn less often within the original context are stretched fully.", positive());
    v("rope-truncate", rope_truncate, "With yarn, round the pairs of both numbers of turns outwards.");
    v("rope-short-factors", rope_short_factors,
      "With longrope, a divisor of each pair's angle, separated by commas, for samples within the original "
      "context.");
    v("rope-long-factors", rope_long_factors, "The same for longer samples.");
    v("no-rope-freq", no_rope_freq,
      "Leave every N-th layer without rotation, as SmolLM3 does with 4; 0: all are rotated.",
      between(0, 1 << 16));
    v("sliding-window", sliding_window, "Tokens that a token attends to, including itself; 0: all before it.",
      at_least(0));
    v("window-attn-skip-freq", window_skip_freq,
      "Leave every N-th layer without the window, as OLMo 3 does with 4; 0: all have it.",
      between(0, 1 << 16));
    v("max-window-layers", full_layers, "Leave the first N layers without the window, as some of Qwen 2 do.",
      between(0, 1 << 16));
    v("normalization", norm, "Kind of the normalization layers.");
    v("norm-placement", norm_placement,
      "Whether a layer normalizes what attention and feed-forward block read (before), what they add to the "
      "residual stream, as OLMo 2 does (after), or both.");
    v("norm-epsilon", norm_epsilon, "Added to the variance in the normalization.", positive(),
      alias({"layernorm-epsilon"}));
    v("swiglu", swiglu, "Gated SiLU in the feed-forward block instead of GELU.");
    v("openai-gelu", openai_gelu, "GELU in OpenAI's form (tanh).");
    v("bias-gelu-fusion", bias_gelu_fusion,
      "GELU in the form of Megatron's fused kernel (tanh); off: exact.");
    v("squared-relu", squared_relu, "Squared ReLU instead of GELU.");
    v("hidden-act", hidden_act,
      "Activation of the feed-forward block by Hugging Face's name: gelu_new (tanh), gelu (exact), "
      "quick_gelu, silu, relu or relu2.",
      default_text("as the options above say"));
    v("add-bias-linear", linear_bias, "Biases in the linear layers.", opposite({"disable-bias-linear"}));
    v("add-qkv-bias", qkv_bias, "Bias of the QKV projection, independent of --add-bias-linear.",
      alias({"qkv-bias"}), default_text("as add-bias-linear"));
    v("qk-layernorm", qk_layernorm,
      "Normalize each head of the queries and of the keys before the rotation, as Qwen 3 does.");
    v("parallel-residual", parallel_residual,
      "Let the feed-forward block read the layer's input, beside attention, as GPT-NeoX does.");
    v("parallel-norms", parallel_norms,
      "Norms of a layer with --parallel-residual: 1 for both branches, as in Falcon 7B, or one for each.",
      between(1, 2));
    v("embedding-multiplier", embedding_multiplier, "Factor of the embedding, as in Granite.", positive());
    v("residual-multiplier", residual_multiplier,
      "Factor of what attention and feed-forward block add to the residual stream.", positive());
    v("attention-multiplier", attention_multiplier, "Factor of the products of queries and keys.",
      between(0, 1 << 20), default_text("1 / sqrt(kv-channels)"));
    v("logits-scaling", logits_scaling, "The logits are divided by this.", positive());
    v("qk-norm-all-heads", qk_norm_all_heads,
      "With --qk-layernorm: normalize all heads of the queries together, and all of the keys, as OLMo 2 "
      "does.");
    v("untie-embeddings-and-output-weights", untied_head, "Give the LM head its own weight.");
    v("attention-dropout", attention_dropout, "Dropout on attention weights.", between(0, 1));
    v("hidden-dropout", hidden_dropout, "Dropout on the residual branches and the embedding.", between(0, 1));
    v("init-method-std", init_std, "Standard deviation of the initial weights.", positive());
    v("make-vocab-size-divisible-by", vocab_divisor,
      "Pad the vocabulary to a multiple of this times tensor-model-parallel-size.", at_least(1));
    v("vocab-size", vocab_size, "Ids of the tokenizer, without padding.", between(0, 2147483647),
      default_text("from the tokenizer"));
    v("hf-model-type", hf_model_type,
      "Family as which the model is exported to Hugging Face (its model_type).",
      default_text("the first that computes the same"));
    v("use-rotary-position-embeddings", use_rotary,
      "Megatron's older spelling of --position-embedding-type rope.");
    v("apply-layernorm-1p", layernorm_1p, "Refused: norm weights around zero are not supported.", unlisted());
    v("rotary-interleaved", rotary_interleaved, "Refused: only the half-rotated layout is supported.",
      unlisted());
  }
  void finish();
  void validate(Problems&) const;

  /// The function that the feed-forward block applies to its first linear layer's output; with swiglu, to the
  /// gate.
  ActivationFunction activation() const;
  /// Whether queries and keys of this layer, numbered from 0 over the whole model, are rotated.
  bool rotates(int layer) const {
    return position == PositionEmbedding::kRope && (no_rope_freq == 0 || (layer + 1) % no_rope_freq != 0);
  }
  /// Whether the rotation depends on the length of a text: on seq_length, beyond rope_original_positions.
  bool rotates_by_length() const {
    return position == PositionEmbedding::kRope &&
           (rope_type == RopeType::kDynamic || rope_type == RopeType::kLongrope);
  }
  /// The number of tokens that a token sees in this layer, numbered from 0 over the whole model, itself
  /// included; 0: all before it.
  int window_of(int layer) const {
    const bool skipped = window_skip_freq > 0 && (layer + 1) % window_skip_freq == 0;
    return layer < full_layers || skipped ? 0 : sliding_window;
  }
  /// Whether some layers have the window, and others have none.
  bool has_mixed_windows() const { return sliding_window > 0 && (window_skip_freq > 0 || full_layers > 0); }
  /// The factor of the product of a query and a key.
  double attention_scale() const;
  /// The options that scale a part of the model, for messages; empty if there is none.
  std::vector<std::string> multipliers() const;
  bool norms_before() const { return norm_placement != NormPlacement::kAfter; }
  bool norms_after() const { return norm_placement != NormPlacement::kBefore; }
  /// Whether the feed-forward block has a norm of its own before it.
  bool has_second_norm() const { return norms_before() && (!parallel_residual || parallel_norms == 2); }
  /// Norms over the hidden size in a layer.
  int layer_norms() const {
    return (norms_before() ? 1 : 0) + (has_second_norm() ? 1 : 0) + (norms_after() ? 2 : 0);
  }
  bool has_qkv_bias() const { return qkv_bias.value_or(linear_bias); }
  int kv_heads() const { return group_query ? query_groups : heads; }
  int rotary_channels() const {
    return static_cast<int>(kv_channels * rotary_percent);
  }  // the number of channels of one head that RoPE rotates
  /// The number of rows of the embedding, padded for this tensor-parallel size (Megatron's
  /// _vocab_size_with_padding).
  int64_t padded_vocab(int tensor_parallel = 1) const;
};

/// The multiples of `divisor` around `value`, as the end of a complaint: "; nearest that work: 28, 32".
std::string nearest_multiples(int64_t value, int64_t divisor);

/// The numbers of --rope-short-factors or --rope-long-factors; empty if one of them is not a positive number.
std::vector<double> rope_factors(const std::string& list);

extern template std::vector<Field> fields_of<ModelConfig>(ModelConfig&);

}  // namespace megalith
