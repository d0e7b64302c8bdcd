#include "libcore/checkpoint/families/family.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

using Misfits = std::vector<std::string>;

void add_bias_misfits(Misfits& list, BiasRule rule, const ModelConfig& c) {
  const bool all = c.linear_bias, qkv = c.has_qkv_bias();
  switch (rule) {
    case BiasRule::kAll:
      return;  // biases that the model lacks are written as zeros
    case BiasRule::kByFlags:
    case BiasRule::kByFlag:
      if (all && !qkv) list.push_back("--no-add-qkv-bias with --add-bias-linear");
      if (!all && qkv) list.push_back("--add-qkv-bias");
      return;
    case BiasRule::kQkv:
    case BiasRule::kQkvByFlag:
      if (all) list.push_back("--add-bias-linear");
      if (!qkv && rule == BiasRule::kQkv) list.push_back("no --add-qkv-bias");
      return;
    case BiasRule::kNone:
      if (all || qkv) list.push_back(all ? "--add-bias-linear" : "--add-qkv-bias");
      return;
  }
}

void add_head_misfits(Misfits& list, const Family& family, const ModelConfig& c) {
  if (family.keys->groups == nullptr && c.kv_heads() != (family.one_group ? 1 : c.heads))
    list.push_back(concat("--num-query-groups ", c.kv_heads()));
  if (family.keys->head == nullptr && int64_t{c.heads} * c.kv_channels != c.hidden)
    list.push_back(concat("--kv-channels ", c.kv_channels));
  if (c.qk_layernorm != family.head_norms)
    list.push_back(c.qk_layernorm ? "--qk-layernorm" : "no --qk-layernorm");
  if (c.qk_norm_all_heads != family.joint_norms)
    list.push_back(c.qk_norm_all_heads ? "--qk-norm-all-heads" : "no --qk-norm-all-heads");
}

void add_window_misfits(Misfits& list, WindowRule rule, const ModelConfig& c) {
  if (rule == WindowRule::kNone && c.sliding_window > 0)
    list.push_back(concat("--sliding-window ", c.sliding_window));
  if (rule == WindowRule::kByFlag || rule == WindowRule::kByType || c.sliding_window == 0) return;
  if (c.window_skip_freq > 0) list.push_back(concat("--window-attn-skip-freq ", c.window_skip_freq));
  if (c.full_layers > 0) list.push_back(concat("--max-window-layers ", c.full_layers));
}

// Scalings that a family whose only one is longrope has not.
void add_scaling_misfits(Misfits& list, const Family& family, const ModelConfig& c) {
  if (family.rotation.original_positions == 0) return;
  if (c.rope_scaling) list.push_back("--use-rope-scaling");
  if (c.rotary_interpolation != 1)
    list.push_back(concat("--rotary-seq-len-interpolation-factor ", c.rotary_interpolation));
  if (c.rope_type == RopeType::kDynamic || c.rope_type == RopeType::kYarn)
    list.push_back(concat("--rope-scaling-type ", enum_name(c.rope_type)));
}

void add_rotation_misfits(Misfits& list, const Family& family, const ModelConfig& c) {
  if (family.position != PositionEmbedding::kRope) return;
  if (c.no_rope_freq > 0 && family.no_rope_interval == 0)
    list.push_back(concat("--no-rope-freq ", c.no_rope_freq));
  if (c.rotary_percent != 1 && family.rotation.share == nullptr)
    list.push_back(concat("--rotary-percent ", c.rotary_percent));
  if (family.rope_by_type && (c.rope_scaling || c.rotary_interpolation != 1))
    list.push_back(c.rope_scaling ? "--use-rope-scaling" : "--rotary-seq-len-interpolation-factor");
  if (family.rope_by_type && c.rope_type != RopeType::kDefault)
    list.push_back(concat("--rope-scaling-type ", enum_name(c.rope_type)));
  add_scaling_misfits(list, family, c);
  if (c.rope_scaling && c.rotary_interpolation != 1)
    list.push_back("--use-rope-scaling together with --rotary-seq-len-interpolation-factor");
}

/// "GPT-2 is", "Qwen2 and Mistral are".
std::string subject(const std::vector<std::string>& titles) {
  const std::span<const std::string> all(titles);
  if (all.size() == 1) return titles[0] + " is";
  return join(all.first(all.size() - 1), ", ") + " and " + titles.back() + " are";
}

}  // namespace

const Family* find_family(std::string_view model_type) {
  const std::span<const Family> all = families();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Family& family) { return family.names.family == model_type; });
  return found == all.end() ? nullptr : &*found;
}

std::string family_types() {
  std::vector<std::string> types;
  for (const Family& family : families())
    if (find_family(family.names.family) == &family) types.emplace_back(family.names.family);
  return join(types, ", ");
}

std::vector<std::string> misfits(const Family& family, const ModelConfig& c) {
  Misfits list;
  if (c.position != family.position)
    list.push_back(concat("--position-embedding-type ", enum_name(c.position)));
  if (c.norm != family.norm) list.push_back(concat("--normalization ", enum_name(c.norm)));
  if (c.norm_placement != family.norm_places)
    list.push_back(concat("--norm-placement ", enum_name(c.norm_placement)));
  if (c.swiglu != family.gated) list.push_back(c.swiglu ? "--swiglu" : "no --swiglu");
  add_head_misfits(list, family, c);
  add_rotation_misfits(list, family, c);
  add_bias_misfits(list, family.biases, c);
  if (family.parallel.key == nullptr && c.parallel_residual != family.parallel.otherwise)
    list.push_back(c.parallel_residual ? "--parallel-residual" : "no --parallel-residual");
  else if (c.parallel_residual && c.parallel_norms != family.parallel_norms)
    list.push_back(concat("--parallel-norms ", c.parallel_norms));
  add_window_misfits(list, family.window, c);
  if (!family.multipliers)
    for (std::string& option : c.multipliers()) list.push_back(std::move(option));
  return list;
}

namespace {

/// The row of the family that --hf-model-type names which expresses the model; null if none does.
const Family* named_family(const ModelConfig& config) {
  const std::span<const Family> all = families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Family& family) {
    return family.names.family == *config.hf_model_type && misfits(family, config).empty();
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

void check_model_type(const ModelConfig& config, Problems& problems) {
  if (!config.hf_model_type || named_family(config)) return;
  const Family* const family = find_family(*config.hf_model_type);
  if (!family)
    problems.add(Opt{"hf-model-type"}, ' ', quote(*config.hf_model_type), ": wanted one of ", family_types());
  else
    problems.add(Opt{"hf-model-type"}, ' ', *config.hf_model_type, ": ", family->title, " does not express ",
                 join(misfits(*family, config), ", "), "; leave one of them out");
}

const Family& family_of(const ModelConfig& config) {
  Problems problems;
  check_model_type(config, problems);
  problems.throw_if_any(ErrorKind::kData);
  if (config.hf_model_type) return *named_family(config);
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // misfits, and who has them
  for (const Family& family : families()) {
    const std::string list = join(misfits(family, config), ", ");
    if (list.empty()) return family;
    auto at = std::find_if(reasons.begin(), reasons.end(),
                           [&](const auto& reason) { return reason.first == list; });
    if (at == reasons.end()) at = reasons.insert(at, {list, {}});
    at->second.emplace_back(family.title);
  }
  std::vector<std::string> texts;
  for (const auto& [list, titles] : reasons) texts.push_back(subject(titles) + " ruled out by " + list);
  fail(ErrorKind::kData, "no Hugging Face model known here computes what this one does: ", join(texts, "; "));
}

}  // namespace megalith
