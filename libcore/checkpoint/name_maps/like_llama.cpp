// Families whose tensors are LLaMA's under other names, or some of them joined.
#include <algorithm>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {
namespace {

constexpr std::string_view kQkv = "self_attention.linear_qkv", kProj = "self_attention.linear_proj",
                           kFc1 = "mlp.linear_fc1", kFc2 = "mlp.linear_fc2", kNorm1 = "input_layernorm",
                           kNorm2 = "pre_mlp_layernorm";

/// A layer or a norm of each block, or what comes before or after the blocks: its parameters' names in place
/// of those in llama_names().
struct OtherName {
  std::string_view
      ours;  // without ".weight", as it follows "decoder.layers.#." or, outside the blocks, whole
  const char *weight, *bias;  // one tensor each; null: no row of llama_names() has it
  Transform transform = Transform::kCopy;
};

void rename(NameMap& names, const OtherName& other) {
  bool found = false;
  for (NameRow& row : names.rows)
    for (const auto& [end, theirs] : {std::pair{".weight", other.weight}, std::pair{".bias", other.bias}})
      if (row.ours == concat("decoder.layers.#.", other.ours, end) || row.ours == concat(other.ours, end)) {
        row.theirs = {theirs};
        row.transform = other.transform;
        found = true;
      }
  if (!found) fail(ErrorKind::kInternal, "no name in LLaMA for ", other.ours);
}

NameMap like_llama(const char* family, const char* architecture, const std::vector<OtherName>& others) {
  NameMap names = llama_names();
  names.family = family;
  names.architecture = architecture;
  for (const OtherName& other : others) rename(names, other);
  return names;
}

/// The first layer of the MLP is not gated.
NameMap without_gates(NameMap names) {
  for (NameRow& row : names.rows) {
    const std::string_view ours = row.ours;
    if (ours.ends_with("linear_fc1.weight")) row.shape = {Dim::kFfn, Dim::kHidden};
    if (ours.ends_with("linear_fc1.bias")) row.shape = {Dim::kFfn};
  }
  return names;
}

NameMap make_gpt_neox() {
  // Each head's query, key and value lie together there, as in our packed QKV with a group for each head.
  NameMap names = without_gates(like_llama(
      "gpt_neox", "GPTNeoXForCausalLM",
      {{"embedding.word_embeddings", "embed_in.weight", nullptr},
       {kNorm1, "layers.#.input_layernorm.weight", "layers.#.input_layernorm.bias"},
       {kQkv, "layers.#.attention.query_key_value.weight", "layers.#.attention.query_key_value.bias"},
       {kProj, "layers.#.attention.dense.weight", "layers.#.attention.dense.bias"},
       {kNorm2, "layers.#.post_attention_layernorm.weight", "layers.#.post_attention_layernorm.bias"},
       {kFc1, "layers.#.mlp.dense_h_to_4h.weight", "layers.#.mlp.dense_h_to_4h.bias"},
       {kFc2, "layers.#.mlp.dense_4h_to_h.weight", "layers.#.mlp.dense_4h_to_h.bias"},
       {"decoder.final_layernorm", "final_layer_norm.weight", "final_layer_norm.bias"},
       {"output_layer", "embed_out.weight", nullptr}}));
  names.prefix = "gpt_neox.";
  names.always_biased = true;
  // Older files also have the causal mask.
  names.skipped.insert(names.skipped.end(), {".attention.bias", ".attention.masked_bias"});
  return names;
}

NameMap make_falcon(int layer_norms) {
  // The queries, key and value of each group lie together there, as in our packed QKV.
  NameMap names = without_gates(like_llama(
      "falcon", "FalconForCausalLM",
      {{"embedding.word_embeddings", "word_embeddings.weight", nullptr},
       {kNorm1, layer_norms == 1 ? "h.#.input_layernorm.weight" : "h.#.ln_attn.weight",
        layer_norms == 1 ? "h.#.input_layernorm.bias" : "h.#.ln_attn.bias"},
       {kQkv, "h.#.self_attention.query_key_value.weight", "h.#.self_attention.query_key_value.bias"},
       {kProj, "h.#.self_attention.dense.weight", "h.#.self_attention.dense.bias"},
       {kNorm2, "h.#.ln_mlp.weight", "h.#.ln_mlp.bias"},
       {kFc1, "h.#.mlp.dense_h_to_4h.weight", "h.#.mlp.dense_h_to_4h.bias"},
       {kFc2, "h.#.mlp.dense_4h_to_h.weight", "h.#.mlp.dense_4h_to_h.bias"},
       {"decoder.final_layernorm", "ln_f.weight", "ln_f.bias"}}));
  names.prefix = "transformer.";
  return names;
}

}  // namespace

const NameMap& phi3_names() {
  static const NameMap kNames = like_llama(
      "phi3", "Phi3ForCausalLM",
      {{kQkv, "layers.#.self_attn.qkv_proj.weight", "layers.#.self_attn.qkv_proj.bias", Transform::kStackQkv},
       {kFc1, "layers.#.mlp.gate_up_proj.weight", "layers.#.mlp.gate_up_proj.bias"}});
  return kNames;
}

const NameMap& starcoder2_names() {
  static const NameMap kNames =
      without_gates(like_llama("starcoder2", "Starcoder2ForCausalLM",
                               {{kFc1, "layers.#.mlp.c_fc.weight", "layers.#.mlp.c_fc.bias"},
                                {kFc2, "layers.#.mlp.c_proj.weight", "layers.#.mlp.c_proj.bias"}}));
  return kNames;
}

const NameMap& gpt_neox_names() {
  static const NameMap kNames = make_gpt_neox();
  return kNames;
}

const NameMap& falcon_names(int layer_norms) {
  static const NameMap kOne = make_falcon(1), kTwo = make_falcon(2);
  return layer_norms == 1 ? kOne : kTwo;
}

}  // namespace megalith
