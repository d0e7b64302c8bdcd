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
      if (all && !qkv) list.push_back("--no-add-qkv-bias with --add-bias-linear");
      if (!all && qkv) list.push_back("--add-qkv-bias");
      return;
    case BiasRule::kQkv:
      if (all) list.push_back("--add-bias-linear");
      if (!qkv) list.push_back("no --add-qkv-bias");
      return;
    case BiasRule::kNone:
      if (all || qkv) list.push_back(all ? "--add-bias-linear" : "--add-qkv-bias");
      return;
  }
}

void add_head_misfits(Misfits& list, const Family& family, const ModelConfig& c) {
  if (family.keys->groups == nullptr && c.kv_heads() != c.heads)
    list.push_back(concat("--num-query-groups ", c.query_groups));
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

void add_rotation_misfits(Misfits& list, const Family& family, const ModelConfig& c) {
  if (family.position != PositionEmbedding::kRope) return;
  if ((c.no_rope_freq > 0) != (family.no_rope_interval > 0))
    list.push_back(c.no_rope_freq > 0 ? concat("--no-rope-freq ", c.no_rope_freq) : "no --no-rope-freq");
  if (c.rotary_percent != 1) list.push_back(concat("--rotary-percent ", c.rotary_percent));
  if (family.rope_by_type && (c.rope_scaling || c.rotary_interpolation != 1))
    list.push_back(c.rope_scaling ? "--use-rope-scaling" : "--rotary-seq-len-interpolation-factor");
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
  for (const Family& family : families()) types.emplace_back(family.names.family);
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
  add_window_misfits(list, family.window, c);
  if (!family.multipliers)
    for (std::string& option : c.multipliers()) list.push_back(std::move(option));
  return list;
}

const Family& family_of(const ModelConfig& config) {
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
