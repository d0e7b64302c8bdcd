// Families that call some tensors otherwise than LLaMA.
#include <algorithm>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {
namespace {

/// What a tensor is called in place of its name in llama_names().
struct OtherName {
  std::string_view ours;
  std::vector<const char*> theirs;
  Transform transform = Transform::kCopy;
};

NameMap like_llama(const char* family, const char* architecture, const std::vector<OtherName>& others) {
  NameMap names = llama_names();
  names.family = family;
  names.architecture = architecture;
  for (const OtherName& other : others) {
    const auto row = std::find_if(names.rows.begin(), names.rows.end(),
                                  [&](const NameRow& r) { return r.ours == other.ours; });
    if (row == names.rows.end()) fail(ErrorKind::kInternal, "no name in LLaMA for ", other.ours);
    row->theirs = other.theirs;
    row->transform = other.transform;
  }
  return names;
}

}  // namespace

const NameMap& phi3_names() {
  static const NameMap kNames =
      like_llama("phi3", "Phi3ForCausalLM",
                 {{"decoder.layers.#.self_attention.linear_qkv.weight",
                   {"layers.#.self_attn.qkv_proj.weight"},
                   Transform::kStackQkv},
                  {"decoder.layers.#.self_attention.linear_qkv.bias",
                   {"layers.#.self_attn.qkv_proj.bias"},
                   Transform::kStackQkv},
                  {"decoder.layers.#.mlp.linear_fc1.weight", {"layers.#.mlp.gate_up_proj.weight"}},
                  {"decoder.layers.#.mlp.linear_fc1.bias", {"layers.#.mlp.gate_up_proj.bias"}}});
  return kNames;
}

const NameMap& starcoder2_names() {
  static const NameMap kNames = [] {
    NameMap names = like_llama("starcoder2", "Starcoder2ForCausalLM",
                               {{"decoder.layers.#.mlp.linear_fc1.weight", {"layers.#.mlp.c_fc.weight"}},
                                {"decoder.layers.#.mlp.linear_fc1.bias", {"layers.#.mlp.c_fc.bias"}},
                                {"decoder.layers.#.mlp.linear_fc2.weight", {"layers.#.mlp.c_proj.weight"}},
                                {"decoder.layers.#.mlp.linear_fc2.bias", {"layers.#.mlp.c_proj.bias"}}});
    for (NameRow& row : names.rows) {
      const std::string_view ours = row.ours;
      if (ours.ends_with("linear_fc1.weight")) row.shape = {Dim::kFfn, Dim::kHidden};
      if (ours.ends_with("linear_fc1.bias")) row.shape = {Dim::kFfn};
    }
    return names;
  }();
  return kNames;
}

}  // namespace megalith
