#include "libcore/convert/sources/megatron_args.h"

#include <algorithm>
#include <array>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/convert/sources/settings.h"

namespace megalith {
namespace {

using Kind = PickleValue::Kind;
constexpr size_t kLongestList = 1000;  // greatest number of elements of an argument that is a list

Json scalar_json(const PickleTree& tree, PickleRef ref) {
  const PickleValue& value = tree[ref];
  switch (value.kind) {
    case Kind::kBool:
      return value.whole() != 0;
    case Kind::kInt:
      return value.whole();
    case Kind::kFloat:
      return value.real();
    case Kind::kText:
      return replace_invalid_utf8(value.text());
    case Kind::kClass:
      return tree.classes()[static_cast<size_t>(value.whole())].name;
    case Kind::kRecord:
      return tree.class_name(ref);
    case Kind::kNone:
      return {};
    case Kind::kLongInt:
      return "an integer beyond 64 bits";
    default:
      // A text, so that the value counts neither as absent nor as a number or a flag.
      return "a value that is no number, flag or text";
  }
}

// Megatron's settings with which a model computes another function than our models do. A checkpoint that uses
// one of them is refused.
constexpr std::array kForeign = {"num_experts",
                                 "multi_latent_attention",
                                 "qk_l2_norm",
                                 "apply_residual_connection_post_layernorm",
                                 "heterogeneous_layers_config_path",
                                 "mtp_num_layers",
                                 "attention_output_gate",
                                 "is_hybrid_model",
                                 "hybrid_override_pattern",
                                 "num_shared_experts",
                                 "parallel_attention",
                                 "add_position_embedding_to_layers",
                                 "glu_activation",
                                 "quick_geglu",
                                 "expert_model_parallel_size"};

// Whether a setting is used. It is not if it is "None", False, 0 or an empty list, nor if it is 1, the
// neutral value of a factor or size.
bool is_used(const Json& value) {
  if (value.is_bool()) return value.as_bool();
  if (value.is_number()) return value.as_double() != 0 && value.as_double() != 1;
  if (value.is_string()) return !value.as_string().empty();
  if (value.is_array()) return !value.as_array().empty();
  return false;
}

void refuse_foreign(const Settings& s) {
  std::vector<std::string> found;
  for (const char* key : kForeign) {
    const Json* value = s.find(key);
    if (!value ||
        (std::string_view(key) == "glu_activation" && value->is_string() && value->as_string() == "swiglu"))
      continue;
    if (is_used(*value)) found.push_back(concat("--", option_key(key), ' ', value->dump()));
  }
  const std::string position = s.text("position_embedding_type", "learned_absolute");
  if (position != "learned_absolute" && position != "rope")
    found.push_back("--position-embedding-type " + position);
  if (s.text("softmax_type", "vanilla") != "vanilla") found.push_back("--softmax-type");
  if (!found.empty())
    s.refuse("the model was trained with settings that are not supported: ", join(found, ", "));
}

// Reads --window-size (l, r): a token sees itself, l tokens before it and r after it. r has no effect, since
// attention is causal.
int window_of(const Settings& s) {
  const Json* window = s.find("window_size");
  if (!window) return 0;
  const Json& left = window->is_array() && !window->as_array().empty() ? window->as_array()[0] : *window;
  if (!left.is_int() || left.as_int() >= INT32_MAX)
    s.refuse("\"window_size\" is ", window->dump(), ", wanted two integers");
  return left.as_int() < 0 ? 0 : static_cast<int>(left.as_int()) + 1;
}

// Reads --window-attn-skip-freq: every N-th layer has no window, or a list in which 0 marks such a layer.
void set_window_skips(ModelConfig& c, const Settings& s) {
  const Json* said = s.find("window_attn_skip_freq");
  if (!said || c.sliding_window == 0) return;
  if (said->is_int() && said->as_int() >= 0) {
    const int64_t every = said->as_int();
    if (every == 1) c.sliding_window = 0;  // no layer has it
    if (every > 1 && every <= c.layers) c.window_skip_freq = static_cast<int>(every);
    return;
  }
  std::vector<bool> windowed;
  bool marks = said->is_array();
  for (const Json& layer : marks ? said->as_array() : Json::Array{}) {
    marks = marks && (layer.is_int() || layer.is_bool());
    windowed.push_back(layer.is_bool() ? layer.as_bool() : !layer.is_int() || layer.as_int() != 0);
  }
  if (!marks || windowed.size() < static_cast<size_t>(c.layers) || !set_windowed(c, windowed))
    s.refuse("\"window_attn_skip_freq\" is ", said->dump(), ", wanted a number, or a list of ", c.layers,
             " numbers in which 0 marks every N-th layer or the first N");
}

// Reads --no-rope-freq: every N-th layer, or a list in which 1 marks a layer that is not rotated.
int no_rope_freq_of(const Settings& s, int layers) {
  const Json* said = s.find("no_rope_freq");
  if (!said) return 0;
  if (said->is_int() && said->as_int() >= 0 && said->as_int() <= layers)
    return static_cast<int>(said->as_int());
  const auto listed = marked_interval(*said, layers, 1);
  if (!listed)
    s.refuse("\"no_rope_freq\" is ", said->dump(), ", wanted a number up to the ", layers,
             " layers, or a list that marks every N-th of them");
  return *listed;
}

void set_positions(ModelConfig& c, const Settings& s) {
  const bool rope = s.text("position_embedding_type", "learned_absolute") == "rope" ||
                    s.flag("use_rotary_position_embeddings", false);
  c.position = rope ? PositionEmbedding::kRope : PositionEmbedding::kLearned;
  c.rotary_base = s.number("rotary_base", 10000);
  c.rotary_percent = s.number("rotary_percent", 1);
  c.rotary_interpolation = s.number("rotary_seq_len_interpolation_factor", 1);
  c.no_rope_freq = no_rope_freq_of(s, c.layers);
  c.rope_scaling = s.flag("use_rope_scaling", false);
  c.rope_factor = s.number("rope_scaling_factor", c.rope_factor);
  c.max_positions = s.count("max_position_embeddings");
  c.seq_length = s.count("seq_length", c.max_positions);
  c.sliding_window = window_of(s);
  set_window_skips(c, s);
}

}  // namespace

Json args_json(const PickleTree& tree, PickleRef args) {
  Json out = Json::object();
  const auto& members = tree.members(args);
  for (size_t i = 0; i + 1 < members.size(); i += 2) {
    if (tree[members[i]].kind != Kind::kText) continue;
    const PickleValue& value = tree[members[i + 1]];
    Json json = scalar_json(tree, members[i + 1]);
    if (const bool list = value.kind == Kind::kList || value.kind == Kind::kTuple;
        list && value.items().size() <= kLongestList) {
      json = Json::array();
      for (const PickleRef item : value.items()) json.push_back(scalar_json(tree, item));
    }
    if (!json.is_null()) out.as_object().emplace_back(tree[members[i]].text(), std::move(json));
  }
  return out;
}

ModelConfig megatron_config(const Json& args, const std::string& where) {
  const Settings s(args, where);
  refuse_foreign(s);
  ModelConfig c;
  c.layers = s.count("num_layers");
  c.hidden = s.count("hidden_size");
  c.heads = s.count("num_attention_heads");
  c.ffn_hidden = s.count("ffn_hidden_size", four_times(c.hidden));
  c.kv_channels = s.count("kv_channels", c.hidden / c.heads);
  c.group_query = s.flag("group_query_attention", false);
  if (c.group_query) c.query_groups = s.count("num_query_groups");
  set_positions(c, s);
  const std::string norm = s.text("normalization", "LayerNorm");
  if (norm != "LayerNorm" && norm != "RMSNorm")
    s.refuse("\"normalization\" ", quote(norm), " is not supported");
  c.norm = norm == "RMSNorm" ? Normalization::kRmsNorm : Normalization::kLayerNorm;
  c.norm_epsilon = s.number("norm_epsilon", s.number("layernorm_epsilon", 1e-5));
  c.swiglu = s.flag("swiglu", false);
  c.openai_gelu = s.flag("openai_gelu", false);
  c.squared_relu = s.flag("squared_relu", false);
  c.bias_gelu_fusion = s.flag("bias_gelu_fusion", true);
  c.linear_bias = s.flag("add_bias_linear", !s.flag("disable_bias_linear", false));
  if (s.flag("add_qkv_bias", false)) c.qkv_bias = true;
  c.qk_layernorm = s.flag("qk_layernorm", false);
  c.untied_head = s.flag("untie_embeddings_and_output_weights", false);
  c.attention_dropout = s.number("attention_dropout", 0.1);
  c.hidden_dropout = s.number("hidden_dropout", 0.1);
  c.init_std = s.number("init_method_std", 0.02);
  c.vocab_divisor = s.count("make_vocab_size_divisible_by", 128);
  if (s.find("hf_model_type")) c.hf_model_type = s.text("hf_model_type", "");
  check_numbers(c, s);
  return c;
}

}  // namespace megalith
