#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {

const NameMap& gpt2_names() {
  using enum Transform;
  using enum Dim;
  using enum Presence;
  static const NameMap kNames = {
      .family = "gpt2",
      .architecture = "GPT2LMHeadModel",
      .prefix = "transformer.",
      .always_biased = true,
      .rows =
          {
              {"embedding.word_embeddings.weight", {"wte.weight"}, kCopy, {kVocab, kHidden}},
              {"embedding.position_embeddings.weight", {"wpe.weight"}, kCopy, {kPositions, kHidden}},
              {"decoder.layers.#.input_layernorm.weight", {"h.#.ln_1.weight"}, kCopy, {kHidden}},
              {"decoder.layers.#.input_layernorm.bias", {"h.#.ln_1.bias"}, kCopy, {kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.weight",
               {"h.#.attn.c_attn.weight"},
               kJoinQkv,
               {kGroups, kGroupHeads, kHead, kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.bias",
               {"h.#.attn.c_attn.bias"},
               kJoinQkv,
               {kGroups, kGroupHeads, kHead},
               kQkvBias},
              {"decoder.layers.#.self_attention.linear_proj.weight",
               {"h.#.attn.c_proj.weight"},
               kTranspose,
               {kHidden, kHeadsWidth}},
              {"decoder.layers.#.self_attention.linear_proj.bias",
               {"h.#.attn.c_proj.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.layers.#.pre_mlp_layernorm.weight", {"h.#.ln_2.weight"}, kCopy, {kHidden}},
              {"decoder.layers.#.pre_mlp_layernorm.bias", {"h.#.ln_2.bias"}, kCopy, {kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.weight",
               {"h.#.mlp.c_fc.weight"},
               kTranspose,
               {kFfn, kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.bias", {"h.#.mlp.c_fc.bias"}, kCopy, {kFfn}, kLinearBias},
              {"decoder.layers.#.mlp.linear_fc2.weight",
               {"h.#.mlp.c_proj.weight"},
               kTranspose,
               {kHidden, kFfn}},
              {"decoder.layers.#.mlp.linear_fc2.bias",
               {"h.#.mlp.c_proj.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.final_layernorm.weight", {"ln_f.weight"}, kCopy, {kHidden}},
              {"decoder.final_layernorm.bias", {"ln_f.bias"}, kCopy, {kHidden}},
              {"output_layer.weight", {"lm_head.weight"}, kCopy, {kVocab, kHidden}, kUntiedHead},
          },
      .skipped = {".attn.bias",
                  ".attn.masked_bias"},  // the causal mask, which transformers before 4.26 saved
  };
  return kNames;
}

}  // namespace megalith
