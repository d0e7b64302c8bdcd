#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {

// Each head's query, key and value lie together there, as in our packed QKV with a group for each head.
const NameMap& gpt_neox_names() {
  using enum Transform;
  using enum Dim;
  using enum Presence;
  static const NameMap kNames = {
      .family = "gpt_neox",
      .architecture = "GPTNeoXForCausalLM",
      .prefix = "gpt_neox.",
      .always_biased = true,
      .rows =
          {
              {"embedding.word_embeddings.weight", {"embed_in.weight"}, kCopy, {kVocab, kHidden}},
              {"decoder.layers.#.input_layernorm.weight",
               {"layers.#.input_layernorm.weight"},
               kCopy,
               {kHidden}},
              {"decoder.layers.#.input_layernorm.bias", {"layers.#.input_layernorm.bias"}, kCopy, {kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.weight",
               {"layers.#.attention.query_key_value.weight"},
               kCopy,
               {kGroups, kGroupHeads, kHead, kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.bias",
               {"layers.#.attention.query_key_value.bias"},
               kCopy,
               {kGroups, kGroupHeads, kHead},
               kQkvBias},
              {"decoder.layers.#.self_attention.linear_proj.weight",
               {"layers.#.attention.dense.weight"},
               kCopy,
               {kHidden, kHeadsWidth}},
              {"decoder.layers.#.self_attention.linear_proj.bias",
               {"layers.#.attention.dense.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.layers.#.pre_mlp_layernorm.weight",
               {"layers.#.post_attention_layernorm.weight"},
               kCopy,
               {kHidden}},
              {"decoder.layers.#.pre_mlp_layernorm.bias",
               {"layers.#.post_attention_layernorm.bias"},
               kCopy,
               {kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.weight",
               {"layers.#.mlp.dense_h_to_4h.weight"},
               kCopy,
               {kFfn, kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.bias",
               {"layers.#.mlp.dense_h_to_4h.bias"},
               kCopy,
               {kFfn},
               kLinearBias},
              {"decoder.layers.#.mlp.linear_fc2.weight",
               {"layers.#.mlp.dense_4h_to_h.weight"},
               kCopy,
               {kHidden, kFfn}},
              {"decoder.layers.#.mlp.linear_fc2.bias",
               {"layers.#.mlp.dense_4h_to_h.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.final_layernorm.weight", {"final_layer_norm.weight"}, kCopy, {kHidden}},
              {"decoder.final_layernorm.bias", {"final_layer_norm.bias"}, kCopy, {kHidden}},
              {"output_layer.weight", {"embed_out.weight"}, kCopy, {kVocab, kHidden}, kUntiedHead},
          },
      // The causal mask and a table that is computed from the configuration, which older files have.
      .skipped = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
  };
  return kNames;
}

}  // namespace megalith
