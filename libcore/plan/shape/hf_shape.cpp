#include "libcore/plan/shape/hf_shape.h"

#include <span>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/settings.h"

namespace megalith {
namespace {

/// What stands around the experts, read as the family that it is taken from.
ModelShape as_family(const Json& json, const std::string& where, const char* family) {
  Json plain = Json::object();
  for (const auto& [key, value] : json.as_object())
    if (key != "rope_scaling" && key != "rope_parameters" && key != "quantization_config" &&
        key != "model_type" && key != "layer_types")
      plain.set(key, value);
  plain.set("model_type", family);
  if (!plain.find("sliding_window")) plain.set("sliding_window", Json());
  return parse_hf_config(plain, where).config;
}

/// "([0]*3+[1]*58)" of layers that have no experts (0) or some (1); "1" when all have.
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

void set_experts(ModelShape& m, const Settings& s, const char* count) {
  m.experts = s.count(count);
  m.router_topk =
      s.count("num_experts_per_tok", s.find("experts_per_token") ? s.count("experts_per_token") : 2);
}

/// Qwen's: the layers that are no multiple of a step, and those that are named, are dense.
void set_sparse_layers(ModelShape& m, const Settings& s) {
  const int step = s.count("decoder_sparse_step", 1);
  std::vector<int> has(static_cast<size_t>(m.layers), 0);
  for (int layer = 0; layer < m.layers; ++layer) has[static_cast<size_t>(layer)] = (layer + 1) % step == 0;
  if (const Json* dense = s.find("mlp_only_layers"); dense && dense->is_array())
    for (const Json& layer : dense->as_array()) {
      if (!layer.is_int() || layer.as_int() < 0 || layer.as_int() >= m.layers)
        s.refuse("\"mlp_only_layers\" holds ", layer.dump(), ", which is no layer of ", m.layers);
      has[static_cast<size_t>(layer.as_int())] = 0;
    }
  m.layer_freq = layer_pattern(has);
}

ModelShape mixtral_shape(const Json& json, const std::string& where, const Settings& s) {
  ModelShape m = as_family(json, where, "mistral");
  set_experts(m, s, "num_local_experts");
  m.expert_ffn = m.ffn_hidden;
  return m;
}

ModelShape qwen2_moe_shape(const Json& json, const std::string& where, const Settings& s) {
  ModelShape m = as_family(json, where, "qwen2");
  set_experts(m, s, "num_experts");
  m.expert_ffn = s.count("moe_intermediate_size");
  m.shared_ffn = s.count("shared_expert_intermediate_size");
  m.shared_gate = true;
  set_sparse_layers(m, s);
  return m;
}

ModelShape qwen3_shape(const Json& json, const std::string& where) {
  ModelShape m = as_family(json, where, "llama");
  m.qk_layernorm = true;
  return m;
}

ModelShape qwen3_moe_shape(const Json& json, const std::string& where, const Settings& s) {
  ModelShape m = qwen3_shape(json, where);
  set_experts(m, s, "num_experts");
  m.expert_ffn = s.count("moe_intermediate_size");
  set_sparse_layers(m, s);
  return m;
}

ModelShape gpt_oss_shape(const Json& json, const std::string& where, const Settings& s) {
  Json with_biases = json;
  with_biases.set("mlp_bias", true);  // of the router and the experts
  with_biases.set("attention_bias", true);
  ModelShape m = as_family(with_biases, where, "llama");
  set_experts(m, s, s.find("num_local_experts") ? "num_local_experts" : "num_experts");
  m.expert_ffn = m.ffn_hidden;
  if (s.find("sliding_window"))
    log(where, ": every second layer sees ", s.count("sliding_window"),
        " tokens only; all are planned with full attention");
  return m;
}

ModelShape deepseek_shape(const Json& json, const std::string& where, const Settings& s) {
  Json plain = json;
  plain.set("head_dim", s.count("v_head_dim"));
  plain.set("num_key_value_heads", s.count("num_attention_heads"));
  ModelShape m = as_family(plain, where, "llama");
  m.latent_attention = true;
  m.query_rank = s.count("q_lora_rank", 0);
  m.key_rank = s.count("kv_lora_rank");
  m.key_channels = s.count("qk_nope_head_dim");
  m.key_rotated = s.count("qk_rope_head_dim");
  m.value_channels = s.count("v_head_dim");
  set_experts(m, s, "n_routed_experts");
  m.expert_ffn = s.count("moe_intermediate_size");
  m.shared_ffn = s.find("n_shared_experts") ? s.count("n_shared_experts") * m.expert_ffn : 0;
  if (s.count("moe_layer_freq", 1) != 1) s.refuse("\"moe_layer_freq\" other than 1 is not planned");
  const Json* first = s.find("first_k_dense_replace");
  const int64_t dense = first && first->is_int() ? first->as_int() : 0;
  if (dense < 0 || dense > m.layers)
    s.refuse("\"first_k_dense_replace\" is ", dense, ", wanted a number of ", m.layers, " layers");
  std::vector<int> has(static_cast<size_t>(m.layers), 1);
  for (int64_t layer = 0; layer < dense; ++layer) has[static_cast<size_t>(layer)] = 0;
  m.layer_freq = layer_pattern(has);
  m.expert_bias = s.text("topk_method", "") == "noaux_tc";
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
  else if (type == "qwen3")
    shape = qwen3_shape(json, where);
  else if (type == "qwen3_moe")
    shape = qwen3_moe_shape(json, where, s);
  else if (type == "gpt_oss")
    shape = gpt_oss_shape(json, where, s);
  else if (type == "deepseek_v2" || type == "deepseek_v3" || type == "kimi_k2")
    shape = deepseek_shape(json, where, s);
  else if (type == "gpt2" || type == "llama" || type == "qwen2" || type == "mistral")
    shape = parse_hf_config(json, where).config;
  else
    s.refuse("\"model_type\" is ", quote(type),
             "; planned are gpt2, llama, qwen2, mistral, mixtral, qwen2_moe, qwen3, qwen3_moe, gpt_oss, "
             "deepseek_v2, deepseek_v3 and kimi_k2");
  shape.finish();
  return shape;
}

}  // namespace megalith
