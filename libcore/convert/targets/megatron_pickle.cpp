#include "libcore/convert/targets/megatron_pickle.h"

#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/megatron_names.h"
#include "libcore/checkpoint/torch/torch_layout.h"

namespace megalith {
namespace {

constexpr const char* kLayerPrefix = "decoder.layers.";
constexpr double kCheckpointVersion = 3.0;

Json whole_if_possible(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

Json text_or_none(const std::string& text) {
  if (text.empty()) return {};
  return text;
}

// Megatron's window_size (left, right): how many tokens a token sees on either side. null if there is no
// window.
Json window_size(const ModelConfig& c) {
  if (c.sliding_window == 0) return {};
  return Json::Array{c.sliding_window - 1, 0};
}

// Megatron's window_attn_skip_freq: an interval, or a list in which 1 marks a layer that has the window
// (core/transformer/utils.py: is_layer_window_attention).
Json window_skips(const ModelConfig& c) {
  if (!c.has_mixed_windows()) return {};
  if (c.full_layers == 0) return c.window_skip_freq;
  Json list = Json::array();
  for (int layer = 0; layer < c.layers; ++layer) list.push_back(c.window_of(layer) > 0 ? 1 : 0);
  return list;
}

// The args that Megatron compares or adopts when it loads a checkpoint (training/checkpointing.py:
// check_checkpoint_args, load_args_from_checkpoint).
Json::Object model_args(const Conversion& conversion, const MegatronLayout& layout, const MegatronRun& run) {
  const ModelConfig c = with_qkv_bias(conversion.source.config());
  const Json none;
  const char* impl = layout.engine ? "transformer_engine" : "local";
  const bool rope = c.position == PositionEmbedding::kRope;
  return {{"num_layers", c.layers},
          {"encoder_num_layers", c.layers},
          {"hidden_size", c.hidden},
          {"ffn_hidden_size", c.ffn_hidden},
          {"num_attention_heads", c.heads},
          {"kv_channels", c.kv_channels},
          {"group_query_attention", c.group_query},
          {"num_query_groups", c.group_query ? c.query_groups : 1},
          {"seq_length", c.seq_length},
          {"encoder_seq_length", c.seq_length},
          {"max_position_embeddings", c.max_positions},
          {"position_embedding_type", enum_name(c.position)},
          {"add_position_embedding", c.position == PositionEmbedding::kLearned},
          {"use_rotary_position_embeddings", rope},
          {"rotary_base", whole_if_possible(c.rotary_base)},
          {"rotary_percent", c.rotary_percent},
          {"rotary_seq_len_interpolation_factor",
           c.rotary_interpolation == 1 ? none : whole_if_possible(c.rotary_interpolation)},
          {"use_rope_scaling", c.rope_scaling},
          {"rope_scaling_factor", c.rope_factor},
          {"window_size", window_size(c)},
          {"window_attn_skip_freq", window_skips(c)},
          {"no_rope_freq", c.no_rope_freq > 0 ? Json(c.no_rope_freq) : none},
          {"rotary_interleaved", false},
          {"normalization", enum_name(c.norm)},
          {"norm_epsilon", c.norm_epsilon},
          {"layernorm_epsilon", c.norm_epsilon},
          {"apply_layernorm_1p", false},
          {"swiglu", c.swiglu},
          {"openai_gelu", c.openai_gelu},
          {"bias_gelu_fusion", !c.swiglu && c.activation() == ActivationFunction::kGeluTanh},
          {"bias_swiglu_fusion", c.swiglu},
          {"squared_relu", c.activation() == ActivationFunction::kSquaredRelu},
          {"onnx_safe", none},
          {"add_bias_linear", c.linear_bias},
          {"add_qkv_bias", c.has_qkv_bias()},
          {"qk_layernorm", c.qk_layernorm},
          {"untie_embeddings_and_output_weights", c.untied_head},
          {"attention_dropout", c.attention_dropout},
          {"hidden_dropout", c.hidden_dropout},
          {"init_method_std", c.init_std},
          {"num_experts", none},
          {"make_vocab_size_divisible_by", c.vocab_divisor},
          {"padded_vocab_size", c.padded_vocab(layout.tensor)},
          {"vocab_size", c.vocab_size},
          {"hf_model_type", text_or_none(c.hf_model_type.value_or(""))},  // Megatron ignores it
          {"tokenizer_type", text_or_none(conversion.source.tokenizer().type)},
          {"tokenizer_model", none},
          {"vocab_file", none},
          {"merge_file", none},
          {"tensor_model_parallel_size", layout.tensor},
          {"pipeline_model_parallel_size", layout.pipeline},
          {"virtual_pipeline_model_parallel_size", none},
          {"num_layers_per_virtual_pipeline_stage", none},
          {"expert_model_parallel_size", 1},
          {"context_parallel_size", 1},
          {"world_size", layout.tensor * layout.pipeline},
          {"data_parallel_size", 1},
          {"transformer_impl", impl},
          {"use_dist_ckpt", false},
          {"ckpt_format", "torch"},
          {"fp16", conversion.main_dtype() == DType::kF16},
          {"bf16", conversion.main_dtype() == DType::kBf16},
          {"iteration", run.iteration},
          {"consumed_train_samples", 0},
          {"consumed_valid_samples", 0},
          {"data_parallel_random_init", false}};
}

// Pickles the args. The run's options are set first, so that the model's args, which Megatron needs, and the
// run's progress override them.
void pickle_args(PickleWriter& pickle, int rank, const Conversion& conversion, const MegatronLayout& layout,
                 const MegatronRun& run) {
  Json args(run.options);
  for (const auto& [name, value] : model_args(conversion, layout, run)) args.set(name, value);
  for (const auto& [name, value] : run.progress) args.set(name, value);
  // Megatron has no option --eod-token and ignores this member.
  if (const std::string& end = conversion.end_token(); !end.empty()) args.set("eod_token", end);
  args.set("rank", rank);
  pickle.global("argparse", "Namespace");
  pickle.empty_tuple();
  pickle.construct();
  pickle.begin_dict();
  for (const auto& [name, value] : args.as_object()) {
    pickle.text(name);
    pickle.json(value);
  }
  pickle.text("params_dtype");
  pickle_dtype(pickle, conversion.main_dtype());
  pickle.end_dict();
  pickle.build();
}

// Pickles the "_extra_state" keys that Transformer Engine's linear layers need. Without fp8, their value must
// be None.
void pickle_extra_states(PickleWriter& pickle, int layers) {
  for (int layer = 0; layer < layers; ++layer)
    for (const char* linear :
         {"self_attention.linear_qkv", "self_attention.linear_proj", "mlp.linear_fc1", "mlp.linear_fc2"}) {
      pickle.text(concat(kLayerPrefix, layer, '.', linear, "._extra_state"));
      pickle.none();
    }
}

void pickle_tensor_of(PickleWriter& pickle, const OutputFile& file, size_t i) {
  const OutputTensor& tensor = file.tensors[i];
  pickle_tensor(pickle, {tensor.name, plain_type(tensor.storage), tensor.shape}, i);
}

void pickle_model(PickleWriter& pickle, const MegatronRankFile& rank, int layers) {
  pickle.begin_dict();
  for (size_t i = 0; i < rank.params; ++i) {
    pickle.text(rank.file.tensors[i].name);
    pickle_tensor_of(pickle, rank.file, i);
  }
  pickle_extra_states(pickle, layers);
  pickle.end_dict();
}

void pickle_members(PickleWriter& pickle, const Json::Object& members) {
  for (const auto& [name, value] : members) {
    pickle.text(name);
    pickle.json(value);
  }
}

// One of Megatron's groups of parameters (core/optimizer: _get_param_groups). There is one with weight decay
// and one without, in the order of their first parameters; with decay_all, one.
struct Group {
  bool decays;
  std::vector<size_t> params = {};
};

std::vector<Group> groups_of(const MegatronRankFile& rank, bool decay_all) {
  std::vector<Group> groups;
  for (size_t i = 0; i < rank.params; ++i) {
    const OutputTensor& tensor = rank.file.tensors[i];
    const bool decays = decay_all || !is_vector(tensor.name, tensor.shape.rank);
    if (groups.empty() || (groups.size() == 1 && groups[0].decays != decays)) groups.push_back({decays});
    groups[groups[0].decays == decays ? 0 : 1].params.push_back(i);
  }
  return groups;
}

// Pickles the state_dict() of torch.optim's Adam. Parameters are numbered through all groups.
void pickle_adam(PickleWriter& pickle, const MegatronRankFile& rank, const std::vector<Group>& groups,
                 const MegatronRun& run) {
  pickle.begin_dict();
  pickle.text("state");
  pickle.begin_dict();
  int64_t number = 0;
  for (const Group& group : groups)
    for (const size_t param : group.params) {
      pickle.integer(number++);
      pickle.begin_dict();
      pickle.text("exp_avg");
      pickle_tensor_of(pickle, rank.file, rank.params + param);
      pickle.text("exp_avg_sq");
      pickle_tensor_of(pickle, rank.file, 2 * rank.params + param);
      pickle.end_dict();
    }
  pickle.end_dict();
  pickle.text("param_groups");
  pickle.begin_list();
  number = 0;
  for (const Group& group : groups) {
    pickle.begin_dict();
    pickle_members(pickle, {{"wd_mult", group.decays ? 1.0 : 0.0},
                            {"lr_mult", 1.0},
                            {"is_expert_parallel", false},
                            {"is_decoupled_lr", false}});
    pickle_members(pickle, run.adam);
    pickle.text("weight_decay");
    pickle.real(group.decays ? run.weight_decay : 0.0);
    pickle.text("params");
    pickle.begin_list();
    for (size_t i = 0; i < group.params.size(); ++i) pickle.integer(number++);
    pickle.end_list();
    pickle.end_dict();
  }
  pickle.end_list();
  pickle.end_dict();
}

void pickle_loss_scale(PickleWriter& pickle, const MegatronRankFile& rank, const Json& scale) {
  pickle.begin_dict();
  pickle.text("scale");
  pickle_tensor(pickle, {"scale", DType::kF32, Shape{1}}, rank.file.tensors.size());
  for (const char* tracker : {"growth_tracker", "hysteresis_tracker"}) {
    pickle.text(tracker);
    pickle.json(scale[tracker]);
  }
  pickle.end_dict();
}

// Pickles the state of Megatron's FP32Optimizer or, if there are masters, of its
// Float16OptimizerWithFloat16Params (core/optimizer/optimizer).
void pickle_optimizer(PickleWriter& pickle, const MegatronRankFile& rank, const MegatronRun& run) {
  const std::vector<Group> groups = groups_of(rank, run.decay_all);
  const bool masters = rank.file.tensors.size() == 4 * rank.params;
  if (!masters) return pickle_adam(pickle, rank, groups, run);
  pickle.begin_dict();
  pickle.text("optimizer");
  pickle_adam(pickle, rank, groups, run);
  if (run.loss_scale) {
    pickle.text("grad_scaler");
    pickle_loss_scale(pickle, rank, *run.loss_scale);
  }
  pickle.text("fp32_from_fp16_params");
  pickle.begin_list();
  for (const Group& group : groups) {
    pickle.begin_list();
    for (const size_t param : group.params) pickle_tensor_of(pickle, rank.file, 3 * rank.params + param);
    pickle.end_list();
  }
  pickle.end_list();
  pickle.end_dict();
}

}  // namespace

ModelConfig with_qkv_bias(ModelConfig config) {
  if (config.linear_bias) config.qkv_bias = true;
  return config;
}

std::string pickle_of(const MegatronRankFile& rank, const Conversion& conversion,
                      const MegatronLayout& layout, const MegatronRun& run) {
  PickleWriter pickle;
  pickle.begin_dict();
  pickle.text("args");
  pickle_args(pickle, rank.rank, conversion, layout, run);
  pickle.text("checkpoint_version");
  pickle.real(kCheckpointVersion);
  pickle.text("iteration");
  pickle.integer(run.iteration);
  pickle.text("model");
  pickle_model(pickle, rank, layout.engine ? conversion.source.config().layers / layout.pipeline : 0);
  if (run.optimizer()) {
    pickle.text("optimizer");
    pickle_optimizer(pickle, rank, run);
  }
  if (!run.scheduler.empty()) {
    pickle.text("opt_param_scheduler");
    pickle.begin_dict();
    pickle_members(pickle, run.scheduler);
    pickle.end_dict();
  }
  pickle.end_dict();
  return pickle.finish();
}

}  // namespace megalith
