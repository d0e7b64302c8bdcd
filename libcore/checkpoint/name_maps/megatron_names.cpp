#include "libcore/checkpoint/name_maps/megatron_names.h"

#include <array>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr int64_t kGreatestLayer = 99999;

struct Spelling {
  std::string_view theirs, ours;  // the part before "weight" or "bias"
};
// Names of a layer's tensors, as they follow "decoder.layers.#.". If several of Megatron's names have one
// name of ours, the latest generation's comes last.
constexpr std::array kLayerNames = {
    Spelling{"input_norm.", "input_layernorm."},
    Spelling{"self_attention.layernorm_qkv.layer_norm_", "input_layernorm."},
    Spelling{"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
    Spelling{"input_layernorm.", "input_layernorm."},
    Spelling{"attention.query_key_value.", "self_attention.linear_qkv."},
    Spelling{"self_attention.query_key_value.", "self_attention.linear_qkv."},
    Spelling{"self_attention.layernorm_qkv.", "self_attention.linear_qkv."},
    Spelling{"self_attention.linear_qkv.", "self_attention.linear_qkv."},
    Spelling{"attention.dense.", "self_attention.linear_proj."},
    Spelling{"self_attention.dense.", "self_attention.linear_proj."},
    Spelling{"self_attention.proj.", "self_attention.linear_proj."},
    Spelling{"self_attention.linear_proj.", "self_attention.linear_proj."},
    Spelling{"self_attention.q_layernorm.", "self_attention.q_layernorm."},
    Spelling{"self_attention.k_layernorm.", "self_attention.k_layernorm."},
    Spelling{"post_attention_layernorm.", "pre_mlp_layernorm."},
    Spelling{"post_attention_norm.", "pre_mlp_layernorm."},
    Spelling{"layernorm_mlp.layer_norm_", "pre_mlp_layernorm."},
    Spelling{"mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."},
    Spelling{"pre_mlp_layernorm.", "pre_mlp_layernorm."},
    Spelling{"mlp.dense_h_to_4h.", "mlp.linear_fc1."},
    Spelling{"layernorm_mlp.fc1_", "mlp.linear_fc1."},
    Spelling{"mlp.linear_fc1.", "mlp.linear_fc1."},
    Spelling{"mlp.dense_4h_to_h.", "mlp.linear_fc2."},
    Spelling{"layernorm_mlp.fc2_", "mlp.linear_fc2."},
    Spelling{"mlp.linear_fc2.", "mlp.linear_fc2."},
};
constexpr std::array kOuterNames = {
    Spelling{"embedding.word_embeddings.", "embedding.word_embeddings."},
    Spelling{"embedding.position_embeddings.", "embedding.position_embeddings."},
    Spelling{"decoder.final_layernorm.", "decoder.final_layernorm."},
    Spelling{"decoder.final_norm.", "decoder.final_layernorm."},
    Spelling{"output_layer.", "output_layer."},
    Spelling{"word_embeddings_for_head.", "output_layer."},  // the last stage's copy of a tied embedding
};

template <size_t n>
std::optional<std::string> spelled(const std::array<Spelling, n>& names, std::string_view key) {
  for (const Spelling& name : names)
    for (const std::string_view end : {"weight", "bias"})
      if (key.size() == name.theirs.size() + end.size() && key.starts_with(name.theirs) && key.ends_with(end))
        return concat(name.ours, end);
  return {};
}

// Turns "language_model.encoder.layers.0.…" (legacy) into "decoder.layers.0.…" (mcore).
std::string without_legacy_prefix(std::string_view key) {
  constexpr std::string_view kModel = "language_model.";
  if (!key.starts_with(kModel)) return std::string(key);
  key.remove_prefix(kModel.size());
  for (const std::string_view stack : {"encoder.", "transformer."})
    if (key.starts_with(stack)) return concat("decoder.", key.substr(stack.size()));
  return std::string(key);
}

}  // namespace

std::optional<MegatronName> our_name(std::string_view key) {
  constexpr std::string_view kLayers = "decoder.layers.";
  const std::string name = without_legacy_prefix(key);
  if (!name.starts_with(kLayers)) {
    const auto ours = spelled(kOuterNames, name);
    return ours ? std::optional(MegatronName{*ours}) : std::nullopt;
  }
  const std::string_view rest = std::string_view(name).substr(kLayers.size());
  const size_t point = rest.find('.');
  if (point == std::string_view::npos) return {};
  const auto layer = parse_int(rest.substr(0, point));
  const auto ours = spelled(kLayerNames, rest.substr(point + 1));
  if (!layer || *layer < 0 || *layer > kGreatestLayer || !ours) return {};
  return MegatronName{concat(kLayers, "#.", *ours), static_cast<int>(*layer)};
}

bool is_skipped(std::string_view key) {
  return key.ends_with("_extra_state") || key.find("._extra_state/") != std::string_view::npos ||
         key.ends_with("rotary_pos_emb.inv_freq") || key.ends_with("rotary_emb.inv_freq");
}

bool is_vector(std::string_view name, int axes) {
  return axes == 1 || name.ends_with(".bias");
}

TensorSharding sharding_of(std::string_view ours, bool swiglu) {
  if (ours.ends_with("embedding.word_embeddings.weight") || ours.ends_with("output_layer.weight"))
    return TensorSharding::kRows;
  if (ours.find(".self_attention.linear_qkv.") != std::string_view::npos) return TensorSharding::kQkv;
  if (ours.find(".mlp.linear_fc1.") != std::string_view::npos)
    return swiglu ? TensorSharding::kGateUp : TensorSharding::kRows;
  if (ours.ends_with(".self_attention.linear_proj.weight") || ours.ends_with(".mlp.linear_fc2.weight"))
    return TensorSharding::kColumns;
  return TensorSharding::kWhole;
}

}  // namespace megalith
