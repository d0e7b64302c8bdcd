#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {

// Rows keep their order in rotary heads: Megatron and transformers both rotate the two halves of a head.
const NameMap& llama_names() {
  using enum Transform;
  using enum Dim;
  using enum Presence;
  static const NameMap kNames = {
      .family = "llama",
      .architecture = "LlamaForCausalLM",
      .prefix = "model.",
      .always_biased = false,
      .rows =
          {
              {"embedding.word_embeddings.weight", {"embed_tokens.weight"}, kCopy, {kVocab, kHidden}},
              {"decoder.layers.#.input_layernorm.weight",
               {"layers.#.input_layernorm.weight"},
               kCopy,
               {kHidden}},
              {"decoder.layers.#.input_layernorm.bias",
               {"layers.#.input_layernorm.bias"},
               kCopy,
               {kHidden},
               kNormBias},
              {"decoder.layers.#.self_attention.linear_qkv.weight",
               {"layers.#.self_attn.q_proj.weight", "layers.#.self_attn.k_proj.weight",
                "layers.#.self_attn.v_proj.weight"},
               kSplitQkv,
               {kGroups, kGroupHeads, kHead, kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.bias",
               {"layers.#.self_attn.q_proj.bias", "layers.#.self_attn.k_proj.bias",
                "layers.#.self_attn.v_proj.bias"},
               kSplitQkv,
               {kGroups, kGroupHeads, kHead},
               kQkvBias},
              {"decoder.layers.#.self_attention.q_layernorm.weight",
               {"layers.#.self_attn.q_norm.weight"},
               kCopy,
               {kHead},
               kHeadNorms},
              {"decoder.layers.#.self_attention.k_layernorm.weight",
               {"layers.#.self_attn.k_norm.weight"},
               kCopy,
               {kHead},
               kHeadNorms},
              {"decoder.layers.#.self_attention.linear_proj.weight",
               {"layers.#.self_attn.o_proj.weight"},
               kCopy,
               {kHidden, kHeadsWidth}},
              {"decoder.layers.#.self_attention.linear_proj.bias",
               {"layers.#.self_attn.o_proj.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.layers.#.pre_mlp_layernorm.weight",
               {"layers.#.post_attention_layernorm.weight"},
               kCopy,
               {kHidden},
               kSecondNorm},
              {"decoder.layers.#.pre_mlp_layernorm.bias",
               {"layers.#.post_attention_layernorm.bias"},
               kCopy,
               {kHidden},
               kSecondNormBias},
              {"decoder.layers.#.mlp.linear_fc1.weight",
               {"layers.#.mlp.gate_proj.weight", "layers.#.mlp.up_proj.weight"},
               kSplitGateUp,
               {kTwo, kFfn, kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.bias",
               {"layers.#.mlp.gate_proj.bias", "layers.#.mlp.up_proj.bias"},
               kSplitGateUp,
               {kTwo, kFfn},
               kLinearBias},
              {"decoder.layers.#.mlp.linear_fc2.weight",
               {"layers.#.mlp.down_proj.weight"},
               kCopy,
               {kHidden, kFfn}},
              {"decoder.layers.#.mlp.linear_fc2.bias",
               {"layers.#.mlp.down_proj.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.final_layernorm.weight", {"norm.weight"}, kCopy, {kHidden}},
              {"decoder.final_layernorm.bias", {"norm.bias"}, kCopy, {kHidden}, kNormBias},
              {"output_layer.weight", {"lm_head.weight"}, kCopy, {kVocab, kHidden}, kUntiedHead},
          },
      .skipped = {".rotary_emb.inv_freq"},  // a table that is computed from the configuration
  };
  return kNames;
}

}  // namespace megalith
