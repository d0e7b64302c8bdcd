#include "libcore/dialects/ddp_tutorial/tutorial_names.h"

#include <algorithm>
#include <map>

#include "libcore/checkpoint/name_maps/megatron_names.h"
#include "libcore/checkpoint/native/checkpoint_format.h"

namespace megalith {

const NameMap& tutorial_names() {
  using enum Transform;
  using enum Dim;
  using enum Presence;
  static const NameMap kNames = {
      .family = "ddp-tutorial",
      .architecture = "GPTModel",
      .prefix = "",
      .always_biased = false,
      .rows =
          {
              {"embedding.word_embeddings.weight", {kTutorialEmbedding}, kCopy, {kVocab, kHidden}},
              {"embedding.position_embeddings.weight", {"pos_emb.weight"}, kCopy, {kPositions, kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.weight",
               {"trf_blocks.#.att.W_query.weight", "trf_blocks.#.att.W_key.weight",
                "trf_blocks.#.att.W_value.weight"},
               kSplitQkv,
               {kGroups, kGroupHeads, kHead, kHidden}},
              {"decoder.layers.#.self_attention.linear_qkv.bias",
               {"trf_blocks.#.att.W_query.bias", "trf_blocks.#.att.W_key.bias",
                "trf_blocks.#.att.W_value.bias"},
               kSplitQkv,
               {kGroups, kGroupHeads, kHead},
               kQkvBias},
              {"decoder.layers.#.self_attention.linear_proj.weight",
               {"trf_blocks.#.att.out_proj.weight"},
               kCopy,
               {kHidden, kHeadsWidth}},
              {"decoder.layers.#.self_attention.linear_proj.bias",
               {"trf_blocks.#.att.out_proj.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.layers.#.mlp.linear_fc1.weight",
               {"trf_blocks.#.ff.layers.0.weight"},
               kCopy,
               {kFfn, kHidden}},
              {"decoder.layers.#.mlp.linear_fc1.bias",
               {"trf_blocks.#.ff.layers.0.bias"},
               kCopy,
               {kFfn},
               kLinearBias},
              {"decoder.layers.#.mlp.linear_fc2.weight",
               {"trf_blocks.#.ff.layers.2.weight"},
               kCopy,
               {kHidden, kFfn}},
              {"decoder.layers.#.mlp.linear_fc2.bias",
               {"trf_blocks.#.ff.layers.2.bias"},
               kCopy,
               {kHidden},
               kLinearBias},
              {"decoder.layers.#.input_layernorm.weight", {"trf_blocks.#.norm1.scale"}, kCopy, {kHidden}},
              {"decoder.layers.#.input_layernorm.bias", {"trf_blocks.#.norm1.shift"}, kCopy, {kHidden}},
              {"decoder.layers.#.pre_mlp_layernorm.weight", {"trf_blocks.#.norm2.scale"}, kCopy, {kHidden}},
              {"decoder.layers.#.pre_mlp_layernorm.bias", {"trf_blocks.#.norm2.shift"}, kCopy, {kHidden}},
              {"decoder.final_layernorm.weight", {"final_norm.scale"}, kCopy, {kHidden}},
              {"decoder.final_layernorm.bias", {"final_norm.shift"}, kCopy, {kHidden}},
              {"output_layer.weight", {"out_head.weight"}, kCopy, {kVocab, kHidden}, kUntiedHead},
          },
      .skipped = {".att.mask"},  // the causal mask, a buffer
      .to_untie = "give --untie-embeddings-and-output-weights",
  };
  return kNames;
}

bool fits_tutorial(const ModelConfig& model) {
  return model.position == PositionEmbedding::kLearned && model.norm == Normalization::kLayerNorm &&
         model.linear_bias && !model.swiglu && model.activation() == ActivationFunction::kGeluTanh &&
         model.kv_heads() == model.heads && model.heads * model.kv_channels == model.hidden;
}

std::vector<PthParameter> tutorial_parameters(const ModelConfig& model) {
  std::vector<PthParameter> all;
  for (const RenamedTensor& renamed : renamed_tensors(tutorial_names(), model))
    for (size_t part = 0; part < renamed.theirs.size(); ++part) {
      const TheirTensor& theirs = renamed.theirs[part];
      const PartRows rows = part_rows(renamed, part);
      all.push_back({.name = theirs.name,
                     .ours = renamed.ours,
                     .shape = theirs.shape,
                     .form = {renamed.shape, rows.columns == 1},
                     .runs = rows.runs,
                     .decays = theirs.shape.rank > 1});
    }
  // torch goes from module to module: after a layer's weight comes its bias.
  std::map<std::string, size_t> modules;
  const auto module_of = [&modules](const PthParameter& parameter) {
    const std::string name = parameter.name.substr(0, parameter.name.rfind('.'));
    return modules.try_emplace(name, modules.size()).first->second;
  };
  for (const PthParameter& parameter : all) module_of(parameter);
  std::stable_sort(all.begin(), all.end(),
                   [&](const PthParameter& a, const PthParameter& b) { return module_of(a) < module_of(b); });
  return all;
}

std::vector<PthParameter> own_parameters(const TensorFile& ours) {
  std::vector<PthParameter> all;
  for (const StoredTensor& tensor : ours.tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    const Shape shape = tensor.shape();
    const MatrixForm form{shape, shape.rank == 1};
    all.push_back({.name = tensor.name,
                   .ours = tensor.name,
                   .shape = shape,
                   .form = form,
                   .runs = {{0, 0, form.rows()}},
                   .decays = !is_vector(tensor.name, shape.rank)});
  }
  return all;
}

}  // namespace megalith
