#include "libcore/convert/sources/hf_config.h"

#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/config/activations.h"
#include "libcore/convert/sources/hf_layer_types.h"
#include "libcore/convert/sources/hf_rope.h"
#include "libcore/convert/sources/settings.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

// The keys of the numbers in config.json.
std::vector<OptionKeys> number_keys(const ConfigKeys& k) {
  std::vector<OptionKeys> keys = {{"num-layers", {k.layers}},
                                  {"hidden-size", {k.hidden}},
                                  {"ffn-hidden-size", {k.ffn}},
                                  {"num-attention-heads", {k.heads}},
                                  {"kv-channels", {k.head}},
                                  {"num-query-groups", {k.groups}},
                                  {"max-position-embeddings", {k.positions, k.older_positions}},
                                  {"norm-epsilon", {k.epsilon}},
                                  {"attention-dropout", {k.attention_dropout}},
                                  {"hidden-dropout", {k.hidden_dropout}},
                                  {"init-method-std", {"initializer_range"}},
                                  {"embedding-multiplier", {"embedding_multiplier"}},
                                  {"residual-multiplier", {"residual_multiplier"}},
                                  {"attention-multiplier", {"attention_multiplier"}},
                                  {"logits-scaling", {"logits_scaling"}},
                                  {"rotary-base", {"rope_theta"}},
                                  {"rotary-percent", {"partial_rotary_factor"}},
                                  {"rotary-seq-len-interpolation-factor", {"factor"}},
                                  {"rope-scaling-factor", {"factor"}},
                                  {"rope-scaling-low-freq-factor", {"low_freq_factor"}},
                                  {"rope-scaling-high-freq-factor", {"high_freq_factor"}},
                                  {"rope-scaling-original-positions", {"original_max_position_embeddings"}},
                                  {"rope-attention-factor", {"attention_factor"}},
                                  {"rope-beta-fast", {"beta_fast"}},
                                  {"rope-beta-slow", {"beta_slow"}}};
  for (OptionKeys& option : keys) std::erase(option.keys, nullptr);
  std::erase_if(keys, [](const OptionKeys& option) { return option.keys.empty(); });
  return keys;
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

// The type of rotary scaling. The member has a new and an old name; without either, the type is "default".
std::string rope_type(const Settings& rope) {
  return rope.text("rope_type", rope.text("type", "default"));
}

void set_rope_scaling(ModelConfig& c, const RotationRule& rule, const Settings& rope, const Settings& file) {
  const std::string type = rope_type(rope);
  if (rule.original_positions > 0 && type != "default" && type != "longrope" && type != "su")
    rope.refuse("type ", quote(type), " is not supported in this family; default and longrope are");
  const bool long_rope = set_long_rope(c, rule, rope, file);
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
  } else if (!long_rope && type != "default") {
    rope.refuse("type ", quote(type),
                " is not supported; default, linear, llama3, dynamic, yarn and longrope are");
  }
  const bool sound = c.rotary_interpolation > 0 && c.rope_factor > 0 && c.rope_low_freq > 0 &&
                     c.rope_high_freq > c.rope_low_freq;
  if (!sound) rope.refuse("its factors are not positive, or the high one is not above the low one");
}

// Rejects a rotation of a part of each head in families that have none, and in transformers 5's
// "rope_parameters" one for each type of layer.
void refuse_other_rotations(const Settings& rope, const RotationRule& rule) {
  if (!rule.share && rope.number("partial_rotary_factor", 1) != 1)
    rope.refuse("\"partial_rotary_factor\" other than 1 is not supported");
  for (const char* type : {"full_attention", "sliding_attention"})
    if (rope.find(type))
      rope.refuse("a rotation for each type of layer (", quote(type), ") is not supported");
}

// Sets the rotary base and scaling. transformers 4 has "rope_theta" at the top and the rest in
// "rope_scaling". transformers 5 has everything in "rope_parameters", which is read last, so that it takes
// precedence.
void set_rope(ModelConfig& c, const Family& family, const Settings& s) {
  const RotationRule& rule = family.rotation;
  c.rotary_base = s.number(rule.base, family.defaults.rotary_base);
  if (rule.share) c.rotary_percent = s.number(rule.share, rule.default_share);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = s.find(key);
    if (!object) continue;
    if (!object->is_object()) s.refuse(quote(key), " is ", object->dump(), ", wanted an object");
    const Settings rope(*object, concat(s.where(), ": ", quote(key)));
    refuse_other_rotations(rope, rule);
    c.rotary_base = rope.number("rope_theta", c.rotary_base);
    if (rule.share) c.rotary_percent = rope.number("partial_rotary_factor", c.rotary_percent);
    set_rope_scaling(c, rule, rope, s);
  }
  refuse_other_rotations(s, rule);
}

// Sets which layers are not rotated. A list has precedence over the interval.
void set_no_rope_layers(ModelConfig& c, int interval, const Settings& s) {
  if (interval == 0) return;
  c.no_rope_freq = s.count("no_rope_layer_interval", interval);
  if (c.no_rope_freq > c.layers) c.no_rope_freq = 0;
  const Json* list = s.find("no_rope_layers");  // 0: the layer is not rotated
  if (!list) return;
  const auto listed = marked_interval(*list, c.layers, 0);
  if (!listed)
    s.refuse("\"no_rope_layers\" is ", list->dump(), ", wanted 1 for each of the ", c.layers,
             " layers but every N-th, which has 0");
  c.no_rope_freq = *listed;
}

void set_heads(ModelConfig& c, const Family& family, const Settings& s, const Json& json) {
  const ConfigKeys& k = *family.keys;
  if (k.groups) {
    const bool absent = family.defaults.groups > 0 && json.find(k.groups) == nullptr;
    c.query_groups = absent ? family.defaults.groups : s.count(k.groups, c.heads);
    c.group_query = c.query_groups != c.heads;
    if (c.heads % c.query_groups != 0)
      s.refuse(quote(k.heads), ' ', c.heads, " is not a multiple of ", quote(k.groups), ' ', c.query_groups);
  }
  if (family.one_group) c.group_query = true;
  if (k.head)
    c.kv_channels = s.count(k.head, family.defaults.head > 0 ? family.defaults.head : c.hidden / c.heads);
  else if (c.hidden % c.heads != 0)
    s.refuse(quote(k.hidden), ' ', c.hidden, " is not a multiple of ", quote(k.heads), ' ', c.heads);
}

void set_biases(ModelConfig& c, const Family& family, const Settings& s) {
  const BiasRule rule = family.biases;
  const bool flag = family.bias_flag.key && s.flag(family.bias_flag.key, family.bias_flag.otherwise);
  c.linear_bias = rule == BiasRule::kAll || (rule == BiasRule::kByFlag && flag);
  if (rule == BiasRule::kQkv || (rule == BiasRule::kQkvByFlag && flag)) c.qkv_bias = true;
  if (rule != BiasRule::kByFlags) return;
  c.linear_bias = s.flag("attention_bias", false);
  if (s.flag("mlp_bias", false) != c.linear_bias)
    s.refuse("\"attention_bias\" and \"mlp_bias\" differ, which is not supported");
}

void set_function(ModelConfig& c, const Family& family, const Settings& s) {
  const char* const key = family.keys->activation;
  const ActivationFunction function = activation_of(s, key, family.defaults.activation);
  c.swiglu = family.gated;
  if (!family.gated) return set_activation(c, function);
  if (function != ActivationFunction::kSilu)
    s.refuse(quote(key), ' ', quote(s.text(key, "")),
             " is not supported in a gated feed-forward block; silu is");
}

void set_multipliers(ModelConfig& c, const Settings& s) {
  c.embedding_multiplier = s.number("embedding_multiplier", 1);
  c.residual_multiplier = s.number("residual_multiplier", 1);
  c.attention_multiplier = s.number("attention_multiplier", 1);
  c.logits_scaling = s.number("logits_scaling", 1);
}

ModelConfig read_config(const Family& family, const Settings& s, const Json& json) {
  const ConfigKeys& k = *family.keys;
  const ConfigDefaults& d = family.defaults;
  ModelConfig c;
  c.layers = s.count(k.layers);
  c.hidden = s.count(k.hidden);
  c.heads = s.count(k.heads);
  c.ffn_hidden = family.gated ? s.count(k.ffn) : s.count(k.ffn, four_times(c.hidden));
  const int positions = k.older_positions ? s.count(k.older_positions, d.positions) : d.positions;
  c.max_positions = c.seq_length = s.count(k.positions, positions);
  c.vocab_size = s.count("vocab_size");
  c.position = family.position;
  c.norm = family.norm;
  c.norm_epsilon = s.number(k.epsilon, d.epsilon);
  c.qk_layernorm = family.head_norms;
  c.qk_norm_all_heads = family.joint_norms;
  c.norm_placement = family.norm_places;
  c.untied_head = !s.flag("tie_word_embeddings", d.tied);
  c.attention_dropout = s.number(k.attention_dropout, d.dropout);
  c.hidden_dropout = k.hidden_dropout ? s.number(k.hidden_dropout, d.dropout) : 0;
  c.init_std = s.number("initializer_range", 0.02);
  if (family.position == PositionEmbedding::kRope) set_rope(c, family, s);
  set_no_rope_layers(c, family.no_rope_interval, s);
  set_function(c, family, s);
  set_biases(c, family, s);
  const NamedFlag& parallel = family.parallel;
  c.parallel_residual = parallel.key ? s.flag(parallel.key, parallel.otherwise) : parallel.otherwise;
  if (c.parallel_residual) c.parallel_norms = family.parallel_norms;
  set_heads(c, family, s, json);
  set_hf_window(c, family, s, json);
  if (family.multipliers) set_multipliers(c, s);
  for (const FixedFlag& flag : family.fixed) s.only(flag.key, flag.value, flag.value);
  for (const FixedCount& count : family.fixed_counts)
    if (const int said = s.count(count.key, count.value); said != count.value)
      s.refuse(quote(count.key), ' ', said, " is not supported; ", count.value, " is");
  return c;
}

Json id_or_null(const std::optional<int64_t>& id) {
  return id ? Json(*id) : Json();
}

Json::Object rope_parameters(const ModelConfig& c) {
  Json::Object rope = long_rope_parameters(c);
  if (rope.empty()) rope = {{"rope_type", "default"}};
  rope.push_back({"rope_theta", c.rotary_base});
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

void add(Json::Object& members, const char* key, Json value) {
  if (key) members.emplace_back(key, std::move(value));
}

void add_rotation(Json::Object& members, const Family& family, const ModelConfig& c) {
  const RotationRule& rule = family.rotation;
  Json::Object rope = rope_parameters(c);
  if (rule.share) {
    rope.push_back({"partial_rotary_factor", c.rotary_percent});
    members.push_back({rule.share, c.rotary_percent});  // for transformers 4
  }
  members.push_back({rule.base, c.rotary_base});  // for transformers 4
  members.push_back(
      {"rope_parameters", family.rope_by_type ? rope_of_types(rope) : rope});  // for transformers 5
  if (rope.front().second.as_string() == "default") return;
  if (const Json scaling = rope_scaling_of(c, rule, rope); !scaling.is_null())
    members.push_back({"rope_scaling", scaling});  // for transformers 4
  if (rule.original_positions > 0)
    members.push_back({"original_max_position_embeddings", c.rope_original_positions});
}

void add_no_rope_layers(Json::Object& members, const Family& family, const ModelConfig& c) {
  if (family.no_rope_interval == 0) return;
  Json::Array list;
  for (int layer = 0; layer < c.layers; ++layer) list.emplace_back(c.rotates(layer) ? 1 : 0);
  const int interval = c.no_rope_freq > 0 ? c.no_rope_freq : c.layers + 1;
  members.insert(members.end(), {{"no_rope_layer_interval", interval}, {"no_rope_layers", list}});
}

void add_biases(Json::Object& members, const Family& family, const ModelConfig& c) {
  if (family.biases == BiasRule::kByFlags)
    members.insert(members.end(), {{"attention_bias", c.linear_bias}, {"mlp_bias", c.linear_bias}});
  const bool flag = family.biases == BiasRule::kByFlag ? c.linear_bias : c.has_qkv_bias();
  if (family.bias_flag.key) members.push_back({family.bias_flag.key, flag});
}

// The family's own name of the function, if it is the usual one there: a function may have several names.
std::string function_name(const Family& family, ActivationFunction function) {
  const char* const usual = family.defaults.activation;
  return hf_activation(usual) == function ? usual : hf_name(function);
}

// The members of config.json that the family's row names.
Json::Object members_of(const Family& family, const ModelConfig& c) {
  const ConfigKeys& k = *family.keys;
  Json::Object members;
  add(members, k.layers, c.layers);
  add(members, k.hidden, c.hidden);
  add(members, k.ffn, c.ffn_hidden);
  add(members, k.heads, c.heads);
  add(members, k.groups, c.kv_heads());
  add(members, k.head, c.kv_channels);
  add(members, k.positions, c.max_positions);
  add(members, k.activation, function_name(family, c.activation()));
  add(members, k.epsilon, c.norm_epsilon);
  add(members, k.attention_dropout, c.attention_dropout);
  add(members, k.embedding_dropout, c.hidden_dropout);
  add(members, k.hidden_dropout, c.hidden_dropout);
  if (family.position == PositionEmbedding::kRope) add_rotation(members, family, c);
  add_biases(members, family, c);
  add_no_rope_layers(members, family, c);
  if (family.parallel.key) members.push_back({family.parallel.key, c.parallel_residual});
  if (family.variant.key) members.push_back({family.variant.key, family.variant.value});
  add_hf_window(members, family.window, c);
  if (family.multipliers)
    members.insert(members.end(), {{"embedding_multiplier", c.embedding_multiplier},
                                   {"residual_multiplier", c.residual_multiplier},
                                   {"attention_multiplier", c.attention_scale()},
                                   {"logits_scaling", c.logits_scaling}});
  if (family.defaults.pads) members.push_back({"pad_token_id", Json()});
  return members;
}

// Names the family in the configuration if another one, which computes the same, would be chosen for an
// export.
void remember_family(HfModel& model) {
  if (!misfits(*model.family, model.config).empty() || &family_of(model.config) == model.family) return;
  model.config.hf_model_type = model.family->names.family;
}

const Family* family_in(const Settings& s) {
  const std::string type = s.text("model_type", "");
  for (const Family& family : families())
    if (type == family.names.family &&
        (!family.variant.key || s.flag(family.variant.key, false) == family.variant.value))
      return &family;
  s.refuse("\"model_type\" is ", quote(type), "; these can be read: ", family_types());
}

}  // namespace

HfModel parse_hf_config(const Json& file, const std::string& where) {
  const JsonNames names(file, where);
  const Json json = with_one_rotation(file, where);
  const Settings s(json, where);
  const Family* const family = family_in(s);
  HfModel model{family, read_config(*family, s, json)};
  if (s.find("quantization_config"))
    s.refuse("the weights are quantized (\"quantization_config\"), which is not supported");
  check_numbers(model.config, s, number_keys(*family->keys));
  model.config.finish();
  remember_family(model);
  Problems problems;
  model.config.validate(problems);
  if (!problems.empty()) s.refuse(problems.text("; "));
  return model;
}

Json hf_config(const ModelConfig& config, DType dtype, const SpecialIds& ids) {
  const Family& family = family_of(config);
  Json::Object json{{"architectures", Json::Array{family.names.architecture}},
                    {"model_type", family.names.family}};
  for (Json::Member& member : members_of(family, config)) json.push_back(std::move(member));
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
