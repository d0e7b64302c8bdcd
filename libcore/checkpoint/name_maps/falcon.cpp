#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {
namespace {

// The queries, key and value of each group lie together there, as in our packed QKV. The norms have the names
// of Falcon 40B, one for each branch.
NameMap two_norms() {
  using enum Transform;
  using enum Dim;
  using enum Presence;
  return {
      .family = "falcon",
      .architecture = "FalconForCausalLM",
      .prefix = "transformer.",
      .always_biased = false,
      .rows =
          {
              {"embedding.word_embeddings.weight", {"word_embeddings.weight"}, kCopy, {kVocab, kHidden}},
              {"decoder.layers.#.input_layernorm.weight", {"h.#.ln_attn.weight"}, kCopy, {kHidden}},
              {"decoder.layers.#.input_layernorm.bias", {"h.#.ln_attn.bias"}, kCopy, {kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.weight",
               {"h.#.self_attention.query_key_value.weight"},
               kCopy,
               {kGroups, kGroupHeads, kHead, kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.bias",
               {"h.#.self_attention.query_key_value.bias"},
               kCopy,
               {kGroups, kGroupHeads, kHead},
               kQkvBias},
              {"decoder.layers.#.self_attention.linear_proj.weight",
               {"h.#.self_attention.dense.weight"},
               kCopy,
               {kHidden, kHeadsWidth}},
              {"decoder.layers.#.self_attention.linear_proj.bias",
               {"h.#.self_attention.dense.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.layers.#.pre_mlp_layernorm.weight",
               {"h.#.ln_mlp.weight"},
               kCopy,
               {kHidden},
               kSecondNorm},
              {"decoder.layers.#.pre_mlp_layernorm.bias", {"h.#.ln_mlp.bias"}, kCopy, {kHidden}, kSecondNorm},
              {"decoder.layers.#.mlp.linear_fc1.weight",
               {"h.#.mlp.dense_h_to_4h.weight"},
               kCopy,
               {kFfn, kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.bias",
               {"h.#.mlp.dense_h_to_4h.bias"},
               kCopy,
               {kFfn},
               kLinearBias},
              {"decoder.layers.#.mlp.linear_fc2.weight",
               {"h.#.mlp.dense_4h_to_h.weight"},
               kCopy,
               {kHidden, kFfn}},
              {"decoder.layers.#.mlp.linear_fc2.bias",
               {"h.#.mlp.dense_4h_to_h.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.final_layernorm.weight", {"ln_f.weight"}, kCopy, {kHidden}},
              {"decoder.final_layernorm.bias", {"ln_f.bias"}, kCopy, {kHidden}},
              {"output_layer.weight", {"lm_head.weight"}, kCopy, {kVocab, kHidden}, kUntiedHead},
          },
      .skipped = {".rotary_emb.inv_freq"},
  };
}

NameMap one_norm() {
  NameMap names = two_norms();
  for (NameRow& row : names.rows) {
    const std::string_view ours = row.ours;
    if (ours.ends_with("input_layernorm.weight")) row.theirs = {"h.#.input_layernorm.weight"};
    if (ours.ends_with("input_layernorm.bias")) row.theirs = {"h.#.input_layernorm.bias"};
  }
  return names;
}

}  // namespace

const NameMap& falcon_names(int layer_norms) {
  static const NameMap kOne = one_norm(), kTwo = two_norms();
  return layer_norms == 1 ? kOne : kTwo;
}

}  // namespace megalith
