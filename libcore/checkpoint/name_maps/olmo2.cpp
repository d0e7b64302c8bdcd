#include <algorithm>
#include <string_view>

#include "libcore/checkpoint/name_maps/name_map.h"

namespace megalith {
namespace {

/// The row of one of our tensors.
NameRow& row_of(NameMap& names, std::string_view ours) {
  return *std::find_if(names.rows.begin(), names.rows.end(),
                       [&](const NameRow& row) { return row.ours == ours; });
}

NameMap make_names() {
  NameMap names = llama_names();
  names.family = "olmo2";
  names.architecture = "Olmo2ForCausalLM";
  std::erase_if(names.rows, [](const NameRow& row) {
    return std::string_view(row.ours) == "decoder.layers.#.input_layernorm.weight";
  });
  NameRow& query = row_of(names, "decoder.layers.#.self_attention.q_layernorm.weight");
  query.shape = {Dim::kHeadsWidth};
  NameRow& key = row_of(names, "decoder.layers.#.self_attention.k_layernorm.weight");
  key.shape = {Dim::kKeysWidth};
  query.presence = key.presence = Presence::kAllHeadNorms;
  // The norm that LLaMA has at this place before the feed-forward block follows attention here.
  NameRow& after = row_of(names, "decoder.layers.#.pre_mlp_layernorm.weight");
  after.ours = "decoder.layers.#.post_self_attn_layernorm.weight";
  after.presence = Presence::kAlways;
  const auto head = std::find_if(names.rows.begin(), names.rows.end(), [](const NameRow& row) {
    return std::string_view(row.ours) == "decoder.final_layernorm.weight";
  });
  names.rows.insert(head, {"decoder.layers.#.post_mlp_layernorm.weight",
                           {"layers.#.post_feedforward_layernorm.weight"},
                           Transform::kCopy,
                           {Dim::kHidden}});
  return names;
}

}  // namespace

const NameMap& olmo2_names() {
  static const NameMap kNames = make_names();
  return kNames;
}

}  // namespace megalith
