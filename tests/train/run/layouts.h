#pragma once

#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/train/run/loop.h"

namespace megalith::test {

struct Family {
  const char* name;
  bool llama, head_norms = false;
  int no_rope_freq = 0;
  void (*change)(ModelConfig&) = nullptr;
};
inline constexpr Family kGpt2{"gpt2", false}, kLlama{"llama", true}, kQwen3{"qwen3", true, true},
    kSmolLm3{"smollm3", true, false, 2};
/// Half of each head rotated, by the factors of samples beyond the original context.
inline constexpr Family kPhi3{"phi3", true, false, 0, [](ModelConfig& model) {
                                model.rotary_percent = 0.5;
                                model.rope_type = RopeType::kLongrope;
                                model.rope_short_factors = "1,1";
                                model.rope_long_factors = "1.5,8";
                                model.rope_original_positions = 4;
                                model.kv_channels = 8;
                              }};
/// Falcon 7B's branches but for its one key and value head, which tensor ranks cannot divide.
inline constexpr Family kFalcon{"falcon", false, false, 0, [](ModelConfig& model) {
                                  model.position = PositionEmbedding::kRope;
                                  model.kv_channels = 8;
                                  model.parallel_residual = true;
                                  model.parallel_norms = 1;
                                  model.linear_bias = false;
                                }};
inline constexpr Family kGptNeoX{"gpt_neox", false, false, 0, [](ModelConfig& model) {
                                   model.position = PositionEmbedding::kRope;
                                   model.rotary_percent = 0.5;
                                   model.kv_channels = 8;
                                   model.parallel_residual = model.untied_head = true;
                                 }};
/// Norms after the branches and over all heads, and a window in every second layer.
inline constexpr Family kOlmo3{"olmo3", true, false, 0, [](ModelConfig& model) {
                                 model.qk_layernorm = model.qk_norm_all_heads = true;
                                 model.norm_placement = NormPlacement::kAfter;
                                 model.sliding_window = 5;
                                 model.window_skip_freq = 2;
                               }};
inline constexpr Family kGranite{"granite", true, false, 0, [](ModelConfig& model) {
                                   model.embedding_multiplier = 3;
                                   model.residual_multiplier = 0.6;
                                   model.attention_multiplier = 0.3;
                                   model.logits_scaling = 1.5;
                                 }};

/// Changes the configuration to the family. GPT-2 is the default; LLaMA gets four key/value heads. Qwen 3 has
/// LLaMA's form with norms of queries and keys, heads of another size and a tied head. OLMo 3 has norms after
/// the branches and over all heads, and a window in all layers but every second.
inline void set_family(ModelConfig& model, const Family& family) {
  if (family.change) family.change(model);
  if (!family.llama) return;
  model.position = PositionEmbedding::kRope;
  model.norm = Normalization::kRmsNorm;
  model.swiglu = model.untied_head = model.group_query = true;
  model.query_groups = 4;
  model.linear_bias = false;
  model.no_rope_freq = family.no_rope_freq;
  if (!family.head_norms) return;
  model.qk_layernorm = true;
  model.kv_channels = 10;
  model.untied_head = false;
}

/// How ranks share the work of a run.
struct Layout {
  const char* name;
  int tensor = 1, pipeline = 1, context = 1, data = 1;
  bool sequence = false;
  Sharding sharding = Sharding::kNone;
  int layers_per_chunk = 0;                       // 0: no interleaving
  std::vector<std::string> pipeline_layers = {};  // empty: split evenly
  Recompute recompute = Recompute::kNone;
};
inline void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.name;
}

/// The configuration of one rank's run, distributed according to `layout`.
inline PretrainConfig shared(PretrainConfig config, const Layout& layout) {
  config.parallel = {};
  config.parallel.tensor = layout.tensor;
  config.parallel.pipeline = layout.pipeline;
  config.parallel.context = layout.context;
  config.parallel.data = layout.data;
  config.parallel.sequence = layout.sequence;
  config.parallel.sharding = layout.sharding;
  config.parallel.bucket_size = 4000;  // small, so that there are several buckets
  if (layout.layers_per_chunk > 0) config.parallel.layers_per_chunk = layout.layers_per_chunk;
  config.parallel.pipeline_layers = layout.pipeline_layers;
  config.train.recompute = layout.recompute;
  if (layout.recompute == Recompute::kFull) config.train.recompute_method = "uniform";
  config.finish();
  return config;
}

/// Layouts of 2 to 8 ranks for a model of four layers and 8 samples per step.
inline const std::vector<Layout>& layouts() {
  static const std::vector<Layout> kLayouts = {
      {.name = "tp2", .tensor = 2},
      {.name = "tp2_sp", .tensor = 2, .sequence = true},
      {.name = "tp4_sp_full", .tensor = 4, .sequence = true, .recompute = Recompute::kFull},
      {.name = "pp2", .pipeline = 2},
      {.name = "pp4_selective", .pipeline = 4, .recompute = Recompute::kSelective},
      {.name = "pp2_vpp2", .pipeline = 2, .layers_per_chunk = 1},
      {.name = "pp2_uneven", .pipeline = 2, .pipeline_layers = {"1", "3"}},
      {.name = "dp2", .data = 2},
      {.name = "dp4_zero1", .data = 4, .sharding = Sharding::kOptimizer},
      {.name = "dp2_zero2", .data = 2, .sharding = Sharding::kGradients},
      {.name = "dp4_zero2_full", .data = 4, .sharding = Sharding::kGradients, .recompute = Recompute::kFull},
      {.name = "tp2_dp2_zero1", .tensor = 2, .data = 2, .sharding = Sharding::kOptimizer},
      {.name = "tp2_sp_pp2", .tensor = 2, .pipeline = 2, .sequence = true},
      {.name = "pp2_dp2_zero1", .pipeline = 2, .data = 2, .sharding = Sharding::kOptimizer},
      {.name = "tp2_sp_pp2_dp2_zero1",
       .tensor = 2,
       .pipeline = 2,
       .data = 2,
       .sequence = true,
       .sharding = Sharding::kOptimizer},
      {.name = "tp2_pp2_vpp2_dp2_zero1_full",
       .tensor = 2,
       .pipeline = 2,
       .data = 2,
       .sharding = Sharding::kOptimizer,
       .layers_per_chunk = 1,
       .recompute = Recompute::kFull},
      {.name = "cp2", .context = 2},
      {.name = "cp4_full", .context = 4, .recompute = Recompute::kFull},
      {.name = "cp2_zero2", .context = 2, .sharding = Sharding::kGradients},
      {.name = "tp2_sp_cp2_selective",
       .tensor = 2,
       .context = 2,
       .sequence = true,
       .recompute = Recompute::kSelective},
      {.name = "cp2_dp2_zero1", .context = 2, .data = 2, .sharding = Sharding::kOptimizer},
      {.name = "tp2_sp_pp2_vpp2_cp2",
       .tensor = 2,
       .pipeline = 2,
       .context = 2,
       .sequence = true,
       .layers_per_chunk = 1},
  };
  return kLayouts;
}

/// Layouts that divide heads, sequence and layers in each way, alone and together. They suffice for a family
/// whose parameters are LLaMA's and some that every tensor rank holds whole.
inline std::vector<Layout> some_layouts() {
  std::vector<Layout> some = layouts();
  const std::set<std::string> names = {"tp2",
                                       "tp4_sp_full",
                                       "cp4_full",
                                       "tp2_sp_pp2_dp2_zero1",
                                       "tp2_sp_cp2_selective",
                                       "tp2_sp_pp2_vpp2_cp2"};
  std::erase_if(some, [&](const Layout& layout) { return !names.contains(layout.name); });
  return some;
}

/// Every layout for both families, with a gtest name for each.
using FamilyLayout = std::pair<Family, Layout>;
inline std::vector<FamilyLayout> family_layouts() {
  std::vector<FamilyLayout> all;
  for (const Family& family : {kGpt2, kLlama})
    for (const Layout& layout : layouts()) all.push_back({family, layout});
  return all;
}
inline std::string name_of(const testing::TestParamInfo<FamilyLayout>& instance) {
  return std::string(instance.param.first.name) + "_" + instance.param.second.name;
}

}  // namespace megalith::test
