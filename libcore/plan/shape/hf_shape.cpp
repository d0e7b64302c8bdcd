#include "libcore/plan/shape/hf_shape.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

/// The object without some of its members.
Json without(Json json, std::initializer_list<std::string_view> keys) {
  if (json.is_object())
    std::erase_if(json.as_object(),
                  [&](const Json::Member& member) { return std::ranges::count(keys, member.first) > 0; });
  return json;
}

/// The shape without experts, read as that of a dense model of `family`.
ModelShape as_family(const Json& json, const std::string& where, const char* family) {
  Json plain = without(json, {"rope_scaling", "rope_parameters", "quantization_config", "layer_types"});
  plain.set("model_type", family);
  for (const char* key : {"sliding_window", "num_key_value_heads"})  // whose defaults are other ones
    if (!plain.find(key)) plain.set(key, Json());
  ModelShape shape = parse_hf_config(plain, where).config;
  shape.hf_model_type.reset();  // that of a mixture is another one
  if (shape.layers > ModelShape::kMostLayers)
    Settings(json, where)
        .refuse("\"num_hidden_layers\" is ", shape.layers, ", wanted ", ModelShape::kMostLayers,
                " layers at most");
  return shape;
}

/// An integer from 0 to `most`; `otherwise` if the key is missing.
int number_from_zero(const Settings& s, const char* key, int most, int otherwise) {
  const Json* found = s.find(key);
  if (!found) return otherwise;
  if (!found->is_int() || found->as_int() < 0 || found->as_int() > most)
    s.refuse(quote(key), " is ", found->dump(), ", wanted an integer from 0 to ", most);
  return static_cast<int>(found->as_int());
}

/// The pattern of layers without experts (0) and with experts (1): "([0]*3+[1]*58)"; "1" if all layers have
/// experts.
std::string layer_pattern(std::span<const int> has_experts) {
  std::string out;
  for (size_t i = 0; i < has_experts.size();) {
    size_t end = i;
    while (end < has_experts.size() && has_experts[end] == has_experts[i]) ++end;
    out += concat(out.empty() ? "" : "+", '[', has_experts[i], "]*", end - i);
    i = end;
  }
  return out.find("[0]") == std::string::npos ? "1" : '(' + out + ')';
}

/// Sets the number of experts and of experts per token. `each`: the default of the latter in the family's
/// configuration class in transformers; 0: there is no default.
void set_experts(ModelShape& m, const Settings& s, const char* count, int each) {
  m.experts = s.count(count);
  // The first files of gpt-oss have this key.
  const bool older = s.find("experts_per_token") && !s.find("num_experts_per_tok");
  const char* const key = older ? "experts_per_token" : "num_experts_per_tok";
  m.router_topk = each > 0 ? s.count(key, each) : s.count(key);
}

/// Sets Qwen's dense layers: those whose number, counted from 1, is not a multiple of decoder_sparse_step,
/// and those that mlp_only_layers lists.
void set_sparse_layers(ModelShape& m, const Settings& s) {
  const int step = s.count("decoder_sparse_step", 1);
  std::vector<int> has(static_cast<size_t>(m.layers), 0);
  for (int layer = 0; layer < m.layers; ++layer) has[static_cast<size_t>(layer)] = (layer + 1) % step == 0;
  const Json* const dense = s.find("mlp_only_layers");
  if (dense && !dense->is_array())
    s.refuse("\"mlp_only_layers\" is ", dense->dump(), ", wanted a list of layers");
  if (dense)
    for (const Json& layer : dense->as_array()) {
      if (!layer.is_int() || layer.as_int() < 0 || layer.as_int() >= m.layers)
        s.refuse("\"mlp_only_layers\" holds ", layer.dump(), ", which is not one of the ", m.layers,
                 " layers");
      has[static_cast<size_t>(layer.as_int())] = 0;
    }
  m.layer_freq = layer_pattern(has);
}

ModelShape mixtral_shape(const Json& json, const std::string& where, const Settings& s) {
  ModelShape m = as_family(json, where, "mistral");
  set_experts(m, s, "num_local_experts", 2);
  m.expert_ffn = m.ffn_hidden;
  return m;
}

ModelShape qwen2_moe_shape(const Json& json, const std::string& where, const Settings& s) {
  ModelShape m = as_family(json, where, "qwen2");
  set_experts(m, s, "num_experts", 4);
  m.expert_ffn = s.count("moe_intermediate_size");
  m.shared_ffn = s.count("shared_expert_intermediate_size");
  m.shared_gate = true;
  set_sparse_layers(m, s);
  return m;
}

ModelShape qwen3_moe_shape(const Json& json, const std::string& where, const Settings& s) {
  ModelShape m = as_family(json, where, "qwen3");
  set_experts(m, s, "num_experts", 8);
  m.expert_ffn = s.count("moe_intermediate_size");
  set_sparse_layers(m, s);
  return m;
}

ModelShape gpt_oss_shape(const Json& json, const std::string& where, const Settings& s) {
  Json with_biases = json;
  with_biases.set("mlp_bias", true);  // the router and the experts have biases
  with_biases.set("attention_bias", true);
  ModelShape m = as_family(with_biases, where, "llama");
  set_experts(m, s, s.find("num_local_experts") ? "num_local_experts" : "num_experts", 4);
  m.expert_ffn = m.ffn_hidden;
  if (s.find("sliding_window"))
    log(where, ": every second layer sees ", s.count("sliding_window"),
        " tokens only; all are planned with full attention");
  return m;
}

/// The total width of DeepSeek's shared experts.
int shared_width(const Settings& s, int each, int otherwise) {
  const int64_t experts = number_from_zero(s, "n_shared_experts", ModelShape::kWidest, otherwise);
  if (experts * each > ModelShape::kWidest)
    s.refuse("\"n_shared_experts\" ", experts, " times \"moe_intermediate_size\" ", each, " are more than ",
             ModelShape::kWidest, " columns");
  return static_cast<int>(experts * each);
}

/// Sets the groups of experts and how many of them a token chooses from. DeepseekV3Config's defaults are 8
/// groups, of which 4 are chosen.
void set_groups(ModelShape& m, const Settings& s) {
  const bool third = s.text("model_type", "") == "deepseek_v3";
  const int groups = s.count("n_group", third ? 8 : 1), chosen = s.count("topk_group", third ? 4 : 1);
  if (chosen >= groups) return;
  m.router_groups = groups;
  m.group_topk = chosen;
}

ModelShape deepseek_shape(const Json& json, const std::string& where, const Settings& s) {
  Json plain = json;
  plain.set("head_dim", s.count("v_head_dim"));
  plain.set("num_key_value_heads", s.count("num_attention_heads"));
  ModelShape m = as_family(plain, where, "llama");
  m.latent_attention = true;
  // A missing key has the default of transformers' classes. A key that is null counts as 0: the model lacks
  // the feature.
  const auto unless_null = [&](const char* key, int value) { return json.find(key) ? 0 : value; };
  m.query_rank = number_from_zero(s, "q_lora_rank", ModelShape::kWidest, unless_null("q_lora_rank", 1536));
  m.key_rank = s.count("kv_lora_rank");
  m.key_channels = s.count("qk_nope_head_dim");
  m.key_rotated = s.count("qk_rope_head_dim");
  m.value_channels = s.count("v_head_dim");
  const bool second = s.text("model_type", "") == "deepseek_v2";
  set_experts(m, s, "n_routed_experts", second ? 0 : 8);
  m.expert_ffn = s.count("moe_intermediate_size");
  m.shared_ffn = shared_width(s, m.expert_ffn, unless_null("n_shared_experts", second ? 2 : 1));
  if (s.count("moe_layer_freq", 1) != 1) s.refuse("\"moe_layer_freq\" other than 1 is not planned");
  const int dense = number_from_zero(s, "first_k_dense_replace", m.layers, second ? 0 : 3);
  std::vector<int> has(static_cast<size_t>(m.layers), 1);
  for (int layer = 0; layer < dense; ++layer) has[static_cast<size_t>(layer)] = 0;
  m.layer_freq = layer_pattern(has);
  const std::string method = s.text("topk_method", second ? "greedy" : "noaux_tc");
  m.expert_bias = method == "noaux_tc";
  if (s.find("scoring_func")) m.score_function = s.text("scoring_func", "");
  if (method != "greedy") set_groups(m, s);
  return m;
}

}  // namespace

ModelShape parse_hf_shape(const Json& json, const std::string& where) {
  const Settings s(json, where);
  const std::string type = s.text("model_type", "");
  ModelShape shape;
  if (type == "mixtral")
    shape = mixtral_shape(json, where, s);
  else if (type == "qwen2_moe")
    shape = qwen2_moe_shape(json, where, s);
  else if (type == "qwen3_moe")
    shape = qwen3_moe_shape(json, where, s);
  else if (type == "gpt_oss")
    shape = gpt_oss_shape(json, where, s);
  else if (type == "deepseek_v2" || type == "deepseek_v3" || type == "kimi_k2")
    shape = deepseek_shape(json, where, s);
  else if (find_family(type))
    shape = parse_hf_config(without(json, {"quantization_config"}), where).config;
  else
    s.refuse("\"model_type\" is ", quote(type), "; plans are made for ", family_types(),
             ", mixtral, qwen2_moe, qwen3_moe, gpt_oss, deepseek_v2, deepseek_v3 and kimi_k2");
  shape.finish();
  return shape;
}

std::string hf_config_file(const std::string& name) {
  const std::string path = path_or_snapshot(name);
  if (!file_exists(path))
    fail(ErrorKind::kNoInput, name, ": there is no such file or folder", hub_remedy(name));
  return std::filesystem::is_directory(path) ? path + "/config.json" : path;
}

}  // namespace megalith
