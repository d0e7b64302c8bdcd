#include "libcore/convert/sources/hf_config.h"

#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/config/activations.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

const std::vector<OptionKeys>& number_keys() {
  static const std::vector<OptionKeys> kKeys = {
      {"num-layers", {"n_layer", "num_hidden_layers"}},
      {"hidden-size", {"n_embd", "hidden_size"}},
      {"ffn-hidden-size", {"n_inner", "intermediate_size"}},
      {"num-attention-heads", {"n_head", "num_attention_heads"}},
      {"kv-channels", {"head_dim"}},
      {"num-query-groups", {"num_key_value_heads"}},
      {"max-position-embeddings", {"n_positions", "n_ctx", "max_position_embeddings"}},
      {"norm-epsilon", {"layer_norm_epsilon", "rms_norm_eps"}},
      {"attention-dropout", {"attn_pdrop", "attention_dropout"}},
      {"hidden-dropout", {"resid_pdrop"}},
      {"init-method-std", {"initializer_range"}},
      {"rotary-base", {"rope_theta"}},
      {"rotary-seq-len-interpolation-factor", {"factor"}},
      {"rope-scaling-factor", {"factor"}},
      {"rope-scaling-low-freq-factor", {"low_freq_factor"}},
      {"rope-scaling-high-freq-factor", {"high_freq_factor"}},
      {"rope-scaling-original-positions", {"original_max_position_embeddings"}}};
  return kKeys;
}

ActivationFunction activation_of(const Settings& s, const char* key, const char* otherwise) {
  const std::string name = s.text(key, otherwise);
  const auto function = hf_activation(name);
  if (!function)
    s.refuse(quote(key), ' ', quote(name), " is not supported; these are: ", hf_activation_names());
  return *function;
}

// Names the function by Megatron's options if they have it, otherwise by --hidden-act.
void set_activation(ModelConfig& c, ActivationFunction function) {
  c.bias_gelu_fusion = function == ActivationFunction::kGeluTanh;
  c.squared_relu = function == ActivationFunction::kSquaredRelu;
  if (c.activation() != function) c.hidden_act = hf_name(function);
}

ModelConfig gpt2_config(const Settings& s) {
  ModelConfig c;
  c.layers = s.count("n_layer");
  c.hidden = s.count("n_embd");
  c.heads = s.count("n_head");
  c.ffn_hidden = s.count("n_inner", four_times(c.hidden));
  c.max_positions = c.seq_length = s.count("n_positions", s.count("n_ctx", 1024));
  c.vocab_size = s.count("vocab_size");
  c.norm_epsilon = s.number("layer_norm_epsilon", 1e-5);
  c.untied_head = !s.flag("tie_word_embeddings", true);
  c.attention_dropout = s.number("attn_pdrop", 0.1);
  c.hidden_dropout = s.number("resid_pdrop", 0.1);
  c.init_std = s.number("initializer_range", 0.02);
  set_activation(c, activation_of(s, "activation_function", "gelu_new"));
  s.only("scale_attn_weights", true, true);
  s.only("scale_attn_by_inverse_layer_idx", false, false);
  s.only("add_cross_attention", false, false);
  if (c.hidden % c.heads != 0)
    s.refuse("\"n_embd\" ", c.hidden, " is not a multiple of \"n_head\" ", c.heads);
  return c;
}

// The type of rotary scaling. The member has a new and an old name; without either, the type is "default".
std::string rope_type(const Settings& rope) {
  return rope.text("rope_type", rope.text("type", "default"));
}

void set_rope_scaling(ModelConfig& c, const Settings& rope) {
  const std::string type = rope_type(rope);
  if (type == "linear") {
    c.rotary_interpolation = rope.number("factor", 1);
  } else if (type == "llama3") {
    for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"})
      if (!rope.find(key)) rope.refuse("has no ", quote(key));
    c.rope_scaling = true;
    c.rope_factor = rope.number("factor", 0);
    c.rope_low_freq = rope.number("low_freq_factor", 0);
    c.rope_high_freq = rope.number("high_freq_factor", 0);
    c.rope_original_positions = rope.count("original_max_position_embeddings");
  } else if (type != "default") {
    rope.refuse("type ", quote(type), " is not supported; default, linear and llama3 are");
  }
  const bool sound = c.rotary_interpolation > 0 && c.rope_factor > 0 && c.rope_low_freq > 0 &&
                     c.rope_high_freq > c.rope_low_freq;
  if (!sound) rope.refuse("its factors are not positive, or the high one is not above the low one");
}

// Sets the rotary base and scaling. transformers 4 has "rope_theta" at the top and the rest in
// "rope_scaling". transformers 5 has everything in "rope_parameters", which is read last, so that it takes
// precedence.
void set_rope(ModelConfig& c, const Settings& s) {
  c.rotary_base = s.number("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = s.find(key);
    if (!object) continue;
    if (!object->is_object()) s.refuse(quote(key), " is ", object->dump(), ", wanted an object");
    const Settings rope(*object, concat(s.where(), ": ", quote(key)));
    c.rotary_base = rope.number("rope_theta", c.rotary_base);
    set_rope_scaling(c, rope);
  }
}

// Rejects layers with different kinds of attention: only one kind for all layers is supported.
void check_layer_types(const Settings& s, bool window) {
  const Json* types = s.find("layer_types");
  if (!types || !types->is_array()) return;
  for (const Json& type : types->as_array())
    if (!type.is_string() || type.as_string() != (window ? "sliding_attention" : "full_attention"))
      s.refuse("\"layer_types\" holds ", type.dump(), ", which is not supported together with ",
               window ? "a sliding window" : "full attention");
}

// The number of tokens that a token sees; 0 if it sees all.
int mistral_window(const Settings& s, const Json& json) {
  constexpr int kDefault = 4096;  // used if the file lacks the member; null means no window
  const int window = json.find("sliding_window") ? s.count("sliding_window", 0) : kDefault;
  check_layer_types(s, window > 0);
  return window;
}

int qwen2_window(const Settings& s, int layers) {
  const int window = s.flag("use_sliding_window", false) ? s.count("sliding_window", 0) : 0;
  const Json* full = s.find("max_window_layers");  // layers below this one have no window
  const int64_t first = full && full->is_int() ? full->as_int() : 0;
  if (window > 0 && first >= layers) return 0;
  if (window > 0 && first > 0)
    s.refuse("\"max_window_layers\" ", first,
             " gives a sliding window to some layers only, which is not supported");
  check_layer_types(s, window > 0);
  return window;
}

// The settings that LLaMA, Qwen2 and Mistral have in common.
ModelConfig rope_config(const Settings& s, int max_position) {
  ModelConfig c;
  c.layers = s.count("num_hidden_layers");
  c.hidden = s.count("hidden_size");
  c.heads = s.count("num_attention_heads");
  c.ffn_hidden = s.count("intermediate_size");
  c.query_groups = s.count("num_key_value_heads", c.heads);
  c.group_query = c.query_groups != c.heads;
  c.kv_channels = s.count("head_dim", c.hidden / c.heads);
  c.max_positions = c.seq_length = s.count("max_position_embeddings", max_position);
  c.vocab_size = s.count("vocab_size");
  c.norm_epsilon = s.number("rms_norm_eps", 1e-6);
  c.untied_head = !s.flag("tie_word_embeddings", false);
  c.attention_dropout = s.number("attention_dropout", 0);
  c.hidden_dropout = 0;
  c.init_std = s.number("initializer_range", 0.02);
  c.position = PositionEmbedding::kRope;
  c.norm = Normalization::kRmsNorm;
  c.swiglu = true;
  c.linear_bias = false;
  set_rope(c, s);
  if (activation_of(s, "hidden_act", "silu") != ActivationFunction::kSilu)
    s.refuse("\"hidden_act\" ", quote(s.text("hidden_act", "")),
             " is not supported in a gated feed-forward block; silu is");
  if (s.number("partial_rotary_factor", 1) != 1)
    s.refuse("\"partial_rotary_factor\" other than 1 is not supported");
  if (c.heads % c.query_groups != 0)
    s.refuse("\"num_attention_heads\" ", c.heads, " is not a multiple of \"num_key_value_heads\" ",
             c.query_groups);
  return c;
}

ModelConfig llama_config(const Settings& s) {
  ModelConfig c = rope_config(s, 2048);
  c.linear_bias = s.flag("attention_bias", false);
  if (s.flag("mlp_bias", false) != c.linear_bias)
    s.refuse("\"attention_bias\" and \"mlp_bias\" differ, which is not supported");
  return c;
}

ModelConfig with_window(ModelConfig c, int window) {
  c.sliding_window = window;
  return c;
}

ModelConfig qwen2_config(const Settings& s) {
  ModelConfig c = rope_config(s, 32768);
  c.qkv_bias = true;
  return with_window(c, qwen2_window(s, c.layers));
}

ModelConfig mistral_config(const Settings& s, const Json& json) {
  return with_window(rope_config(s, 131072), mistral_window(s, json));
}

std::string gpt2_misfits(const ModelConfig& c) {
  std::vector<std::string> list;
  if (c.position != PositionEmbedding::kLearned)
    list.push_back(concat("--position-embedding-type ", enum_name(c.position)));
  if (c.norm != Normalization::kLayerNorm) list.push_back(concat("--normalization ", enum_name(c.norm)));
  if (c.swiglu) list.push_back("--swiglu");
  if (c.kv_heads() != c.heads) list.push_back(concat("--num-query-groups ", c.query_groups));
  if (int64_t{c.heads} * c.kv_channels != c.hidden) list.push_back(concat("--kv-channels ", c.kv_channels));
  if (c.sliding_window > 0) list.push_back(concat("--sliding-window ", c.sliding_window));
  return join(list, ", ");
}

// The options of a model that none of LLaMA, Qwen2 and Mistral supports.
std::vector<std::string> rope_misfits(const ModelConfig& c) {
  std::vector<std::string> list;
  if (c.position != PositionEmbedding::kRope)
    list.push_back(concat("--position-embedding-type ", enum_name(c.position)));
  if (c.norm != Normalization::kRmsNorm) list.push_back(concat("--normalization ", enum_name(c.norm)));
  if (!c.swiglu) list.push_back("no --swiglu");
  if (c.rotary_percent != 1) list.push_back(concat("--rotary-percent ", c.rotary_percent));
  if (c.rope_scaling && c.rotary_interpolation != 1)
    list.push_back("--use-rope-scaling together with --rotary-seq-len-interpolation-factor");
  if (c.linear_bias && !c.has_qkv_bias()) list.push_back("--no-add-qkv-bias with --add-bias-linear");
  if (c.linear_bias && c.sliding_window > 0) list.push_back("--sliding-window with --add-bias-linear");
  return list;
}

const NameMap& rope_family(const ModelConfig& c) {
  if (!c.linear_bias && c.has_qkv_bias()) return qwen2_names();
  return c.sliding_window > 0 ? mistral_names() : llama_names();
}

Json id_or_null(const std::optional<int64_t>& id) {
  return id ? Json(*id) : Json();
}

Json window_or_null(const ModelConfig& c) {
  return c.sliding_window > 0 ? Json(c.sliding_window) : Json();
}

Json::Object rope_parameters(const ModelConfig& c) {
  Json::Object rope{{"rope_type", "default"}, {"rope_theta", c.rotary_base}};
  if (c.rope_scaling)
    rope = {{"rope_type", "llama3"},
            {"rope_theta", c.rotary_base},
            {"factor", c.rope_factor},
            {"low_freq_factor", c.rope_low_freq},
            {"high_freq_factor", c.rope_high_freq},
            {"original_max_position_embeddings", c.rope_original_positions}};
  else if (c.rotary_interpolation != 1)
    rope = {{"rope_type", "linear"}, {"rope_theta", c.rotary_base}, {"factor", c.rotary_interpolation}};
  return rope;
}

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kBf16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    default:
      fail(ErrorKind::kData, "a model cannot have parameters of type ", name_of(dtype));
  }
}

Json::Object gpt2_members(const ModelConfig& c) {
  return {{"n_layer", c.layers},
          {"n_embd", c.hidden},
          {"n_head", c.heads},
          {"n_inner", c.ffn_hidden},
          {"n_positions", c.max_positions},
          {"activation_function", hf_name(c.activation())},
          {"layer_norm_epsilon", c.norm_epsilon},
          {"attn_pdrop", c.attention_dropout},
          {"embd_pdrop", c.hidden_dropout},
          {"resid_pdrop", c.hidden_dropout}};
}

Json::Object rope_members(const ModelConfig& c) {
  const Json::Object rope = rope_parameters(c);
  Json::Object members{{"num_hidden_layers", c.layers},
                       {"hidden_size", c.hidden},
                       {"intermediate_size", c.ffn_hidden},
                       {"num_attention_heads", c.heads},
                       {"num_key_value_heads", c.kv_heads()},
                       {"head_dim", c.kv_channels},
                       {"max_position_embeddings", c.max_positions},
                       {"hidden_act", "silu"},
                       {"rms_norm_eps", c.norm_epsilon},
                       {"rope_theta", c.rotary_base},  // for transformers 4
                       {"rope_parameters", rope},      // for transformers 5
                       {"attention_dropout", c.attention_dropout}};
  if (rope.front().second.as_string() != "default")
    members.push_back({"rope_scaling", rope});  // for transformers 4
  const NameMap& family = rope_family(c);
  if (&family == &llama_names())
    members.insert(members.end(), {{"attention_bias", c.linear_bias}, {"mlp_bias", c.linear_bias}});
  if (&family == &mistral_names()) members.push_back({"sliding_window", window_or_null(c)});
  if (&family == &qwen2_names())
    members.insert(members.end(), {{"use_sliding_window", c.sliding_window > 0},
                                   {"sliding_window", window_or_null(c)},
                                   {"max_window_layers", c.sliding_window > 0 ? 0 : c.layers}});
  return members;
}

}  // namespace

HfModel parse_hf_config(const Json& json, const std::string& where) {
  const JsonNames names(json, where);
  const Settings s(json, where);
  const std::string type = s.text("model_type", "");
  HfModel model{};
  if (type == "gpt2")
    model = {&gpt2_names(), gpt2_config(s)};
  else if (type == "llama")
    model = {&llama_names(), llama_config(s)};
  else if (type == "qwen2")
    model = {&qwen2_names(), qwen2_config(s)};
  else if (type == "mistral")
    model = {&mistral_names(), mistral_config(s, json)};
  else
    s.refuse("\"model_type\" is ", quote(type), "; gpt2, llama, qwen2 and mistral can be read");
  if (s.find("quantization_config"))
    s.refuse("the weights are quantized (\"quantization_config\"), which is not supported");
  check_numbers(model.config, s, number_keys());
  model.config.finish();
  Problems problems;
  model.config.validate(problems);
  if (!problems.empty()) s.refuse(problems.text("; "));
  return model;
}

const NameMap& family_of(const ModelConfig& config) {
  const std::string gpt2 = gpt2_misfits(config), rope = join(rope_misfits(config), ", ");
  if (gpt2.empty()) return gpt2_names();
  if (rope.empty()) return rope_family(config);
  fail(ErrorKind::kData,
       "no Hugging Face model known here computes what this one does: GPT-2 is ruled out by ", gpt2,
       "; LLaMA, Qwen2 and Mistral are ruled out by ", rope);
}

Json hf_config(const ModelConfig& config, DType dtype, const SpecialIds& ids) {
  const NameMap& names = family_of(config);
  Json::Object json{{"architectures", Json::Array{names.architecture}}, {"model_type", names.family}};
  for (Json::Member& member : &names == &gpt2_names() ? gpt2_members(config) : rope_members(config))
    json.push_back(std::move(member));
  json.insert(json.end(), {{"vocab_size", config.vocab_size},
                           {"tie_word_embeddings", !config.untied_head},
                           {"initializer_range", config.init_std},
                           {"bos_token_id", id_or_null(ids.bos)},
                           {"eos_token_id", id_or_null(ids.eos)},
                           {"use_cache", true},
                           {"dtype", torch_name(dtype)},          // for transformers 5
                           {"torch_dtype", torch_name(dtype)}});  // for transformers 4
  return json;
}

Json hf_generation_config(const SpecialIds& ids) {
  return Json::Object{{"bos_token_id", id_or_null(ids.bos)}, {"eos_token_id", id_or_null(ids.eos)}};
}

}  // namespace megalith
