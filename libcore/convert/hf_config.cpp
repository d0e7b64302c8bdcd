#include "libcore/convert/hf_config.h"

#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/convert/settings.h"

namespace megalith {
namespace {

ModelConfig gpt2_config(const Settings& s) {
  ModelConfig c;
  c.layers = s.count("n_layer");
  c.hidden = s.count("n_embd");
  c.heads = s.count("n_head");
  c.ffn_hidden = s.count("n_inner", 4 * c.hidden);
  c.max_positions = c.seq_length = s.count("n_positions", s.count("n_ctx", 1024));
  c.vocab_size = s.count("vocab_size");
  c.norm_epsilon = s.number("layer_norm_epsilon", 1e-5);
  c.untied_head = !s.flag("tie_word_embeddings", true);
  c.attention_dropout = s.number("attn_pdrop", 0.1);
  c.hidden_dropout = s.number("resid_pdrop", 0.1);
  c.init_std = s.number("initializer_range", 0.02);
  const std::string activation = s.text("activation_function", "gelu_new");
  c.bias_gelu_fusion =
      activation == "gelu_new" || activation == "gelu_pytorch_tanh" || activation == "gelu_fast";
  if (!c.bias_gelu_fusion && activation != "gelu")
    s.refuse("\"activation_function\" ", quote(activation), " is not supported; there are gelu_new and gelu");
  s.only("scale_attn_weights", true, true);
  s.only("scale_attn_by_inverse_layer_idx", false, false);
  s.only("add_cross_attention", false, false);
  if (c.hidden % c.heads != 0)
    s.refuse("\"n_embd\" ", c.hidden, " is not a multiple of \"n_head\" ", c.heads);
  return c;
}

double rope_base(const Settings& s) {
  const Json* newer = s.find("rope_parameters");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* rope = s.find(key);
    const Json* type = rope ? rope->find("rope_type") : nullptr;
    if (rope && !type) type = rope->find("type");
    if (type && (!type->is_string() || type->as_string() != "default"))
      s.refuse(quote(key), " of type ", type->dump(), " is not supported; only plain rotary positions are");
  }
  const double outer = s.number("rope_theta", 10000);
  return newer ? Settings(*newer, s.where() + ": \"rope_parameters\"").number("rope_theta", outer) : outer;
}

ModelConfig llama_config(const Settings& s) {
  ModelConfig c;
  c.layers = s.count("num_hidden_layers");
  c.hidden = s.count("hidden_size");
  c.heads = s.count("num_attention_heads");
  c.ffn_hidden = s.count("intermediate_size");
  c.query_groups = s.count("num_key_value_heads", c.heads);
  c.group_query = c.query_groups != c.heads;
  c.kv_channels = s.count("head_dim", c.hidden / c.heads);
  c.max_positions = c.seq_length = s.count("max_position_embeddings", 2048);
  c.vocab_size = s.count("vocab_size");
  c.norm_epsilon = s.number("rms_norm_eps", 1e-6);
  c.untied_head = !s.flag("tie_word_embeddings", false);
  c.attention_dropout = s.number("attention_dropout", 0);
  c.hidden_dropout = 0;
  c.init_std = s.number("initializer_range", 0.02);
  c.position = PositionEmbedding::kRope;
  c.norm = Normalization::kRmsNorm;
  c.swiglu = true;
  c.linear_bias = s.flag("attention_bias", false);
  c.rotary_base = rope_base(s);
  if (s.flag("mlp_bias", false) != c.linear_bias)
    s.refuse("\"attention_bias\" and \"mlp_bias\" differ, which is not supported");
  if (const std::string act = s.text("hidden_act", "silu"); act != "silu")
    s.refuse("\"hidden_act\" ", quote(act), " is not supported");
  if (s.number("partial_rotary_factor", 1) != 1)
    s.refuse("\"partial_rotary_factor\" other than 1 is not supported");
  if (c.heads % c.query_groups != 0)
    s.refuse("\"num_attention_heads\" ", c.heads, " is not a multiple of \"num_key_value_heads\" ",
             c.query_groups);
  return c;
}

std::string gpt2_misfits(const ModelConfig& c) {
  std::vector<std::string> list;
  if (c.position != PositionEmbedding::kLearned)
    list.push_back(concat("--position-embedding-type ", enum_name(c.position)));
  if (c.norm != Normalization::kLayerNorm) list.push_back(concat("--normalization ", enum_name(c.norm)));
  if (c.swiglu) list.push_back("--swiglu");
  if (c.kv_heads() != c.heads) list.push_back(concat("--num-query-groups ", c.query_groups));
  if (c.heads * c.kv_channels != c.hidden) list.push_back(concat("--kv-channels ", c.kv_channels));
  return join(list, ", ");
}

std::string llama_misfits(const ModelConfig& c) {
  std::vector<std::string> list;
  if (c.position != PositionEmbedding::kRope)
    list.push_back(concat("--position-embedding-type ", enum_name(c.position)));
  if (c.norm != Normalization::kRmsNorm) list.push_back(concat("--normalization ", enum_name(c.norm)));
  if (!c.swiglu) list.push_back("no --swiglu");
  if (c.has_qkv_bias() != c.linear_bias)
    list.push_back(c.linear_bias ? "--no-add-qkv-bias" : "--add-qkv-bias");
  if (c.rotary_percent != 1) list.push_back(concat("--rotary-percent ", c.rotary_percent));
  return join(list, ", ");
}

Json id_or_null(const std::optional<int64_t>& id) {
  return id ? Json(*id) : Json();
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
      fail(ErrorKind::kData, "parameters of type ", name_of(dtype), " are no model's");
  }
}

Json::Object gpt2_members(const ModelConfig& c) {
  const bool tanh = c.activation() == Activation::kGeluTanh;
  return {{"n_layer", c.layers},
          {"n_embd", c.hidden},
          {"n_head", c.heads},
          {"n_inner", c.ffn_hidden},
          {"n_positions", c.max_positions},
          {"activation_function", tanh ? "gelu_new" : "gelu"},
          {"layer_norm_epsilon", c.norm_epsilon},
          {"attn_pdrop", c.attention_dropout},
          {"embd_pdrop", c.hidden_dropout},
          {"resid_pdrop", c.hidden_dropout}};
}

Json::Object llama_members(const ModelConfig& c) {
  return {{"num_hidden_layers", c.layers},
          {"hidden_size", c.hidden},
          {"intermediate_size", c.ffn_hidden},
          {"num_attention_heads", c.heads},
          {"num_key_value_heads", c.kv_heads()},
          {"head_dim", c.kv_channels},
          {"max_position_embeddings", c.max_positions},
          {"hidden_act", "silu"},
          {"rms_norm_eps", c.norm_epsilon},
          {"rope_theta", c.rotary_base},  // transformers 4
          {"rope_parameters",
           Json::Object{{"rope_type", "default"}, {"rope_theta", c.rotary_base}}},  // transformers 5
          {"attention_bias", c.linear_bias},
          {"mlp_bias", c.linear_bias},
          {"attention_dropout", c.attention_dropout}};
}

}  // namespace

HfModel parse_hf_config(const Json& json, const std::string& where) {
  const Settings s(json, where);
  const std::string type = s.text("model_type", "");
  HfModel model{};
  if (type == "gpt2")
    model = {&gpt2_names(), gpt2_config(s)};
  else if (type == "llama")
    model = {&llama_names(), llama_config(s)};
  else
    s.refuse("\"model_type\" is ", quote(type), "; gpt2 and llama can be read");
  if (s.find("quantization_config"))
    s.refuse("the weights are quantized (\"quantization_config\"), which is not supported");
  model.config.finish();
  return model;
}

const NameMap& family_of(const ModelConfig& config) {
  const std::string gpt2 = gpt2_misfits(config), llama = llama_misfits(config);
  if (gpt2.empty()) return gpt2_names();
  if (llama.empty()) return llama_names();
  fail(ErrorKind::kData, "no Hugging Face model here computes what this one does: against GPT-2 stand ", gpt2,
       "; against LLaMA stand ", llama);
}

Json hf_config(const ModelConfig& config, DType dtype, const SpecialIds& ids) {
  const NameMap& names = family_of(config);
  Json::Object json{{"architectures", Json::Array{names.architecture}}, {"model_type", names.family}};
  for (Json::Member& member : &names == &gpt2_names() ? gpt2_members(config) : llama_members(config))
    json.push_back(std::move(member));
  json.insert(json.end(), {{"vocab_size", config.vocab_size},
                           {"tie_word_embeddings", !config.untied_head},
                           {"initializer_range", config.init_std},
                           {"bos_token_id", id_or_null(ids.bos)},
                           {"eos_token_id", id_or_null(ids.eos)},
                           {"use_cache", true},
                           {"dtype", torch_name(dtype)},          // transformers 5
                           {"torch_dtype", torch_name(dtype)}});  // transformers 4
  return json;
}

Json hf_generation_config(const SpecialIds& ids) {
  return Json::Object{{"bos_token_id", id_or_null(ids.bos)}, {"eos_token_id", id_or_null(ids.eos)}};
}

}  // namespace megalith
