#include "libcore/plan/log/log_arguments.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {
namespace {

enum class Where { kAlways, kContext, kNarrow };

/// An argument that is priced with these values only, divided by "|", or where it is None or False.
struct PlainArgument {
  const char* name;
  const char* values = "";
  Where where = Where::kAlways;
};

/// Names and values of megatron/training/arguments.py.
constexpr PlainArgument kPlain[] = {
    {"apply_residual_connection_post_layernorm"},
    {"cp_comm_type", "p2p|['p2p']", Where::kContext},
    {"cpu_offloading"},
    {"cpu_offloading_num_layers", "0"},
    {"cuda_graph_impl", "none"},
    {"defer_embedding_wgrad_compute"},
    {"delay_wgrad_compute"},
    {"distribute_saved_activations"},
    {"enable_cuda_graph"},
    {"encoder_pipeline_model_parallel_size", "0"},
    {"encoder_tensor_model_parallel_size", "0"},
    {"exp_avg_dtype", "torch.float32|fp32"},
    {"exp_avg_sq_dtype", "torch.float32|fp32"},
    {"experimental_attention_variant"},
    {"external_cuda_graph"},
    {"fine_grained_activation_offloading"},
    {"first_last_layers_bf16", "", Where::kNarrow},
    {"fp32_residual_connection"},
    {"fp4_param", "", Where::kNarrow},
    {"fp4_param_gather", "", Where::kNarrow},
    {"fp8_dot_product_attention", "", Where::kNarrow},
    {"fp8_multi_head_attention", "", Where::kNarrow},
    {"fp8_param", "", Where::kNarrow},
    {"fp8_param_gather", "", Where::kNarrow},
    {"fp8_recipe", "tensorwise|delayed|blockwise|mxfp8", Where::kNarrow},
    {"fp8_wgrad", "True", Where::kNarrow},
    {"heterogeneous_layers_config_encoded_json"},
    {"heterogeneous_layers_config_path"},
    {"hierarchical_context_parallel_sizes", "", Where::kContext},
    {"hybrid_override_pattern"},
    {"is_hybrid_model"},
    {"linear_attention_type"},
    {"main_grads_dtype", "torch.float32|fp32"},
    {"main_params_dtype", "torch.float32|fp32"},
    {"num_distributed_optimizer_instances", "1"},
    {"optimizer", "adam"},
    {"optimizer_cpu_offload"},
    {"overlap_param_gather_with_optimizer_step"},
    {"pipeline_model_parallel_layout"},
    {"rampup_batch_size"},
    {"retro_add_retriever"},
    {"spec"},
    {"standalone_embedding_stage"},
    {"use_precision_aware_optimizer"},
    {"use_torch_fsdp2"},
    {"use_tp_pp_dp_mapping"},
    {"window_size"},
};

/// Arguments of experts, beside the options that a plan knows.
constexpr PlainArgument kPlainOfExperts[] = {{"moe_flex_dispatcher_backend", "deepep|hybridep"},
                                             {"moe_hybridep_num_sms", "16"},
                                             {"moe_upcycling_granularity", "2"}};

bool is_plain(const std::string& value, const PlainArgument& argument) {
  if (value.empty() || value == "None" || value == "False") return true;
  const std::vector<std::string> plain = split(argument.values, '|');
  return std::find(plain.begin(), plain.end(), value) != plain.end();
}

/// Whether a plan knows this argument of experts, or it changes no plan.
bool is_known_of_experts(const std::string& name, const std::vector<std::string>& ignored) {
  ModelShape shape;
  const std::vector<Field> fields = fields_of(shape);
  return std::find(ignored.begin(), ignored.end(), name) != ignored.end() ||
         std::any_of(fields.begin(), fields.end(), [&](const Field& f) { return json_key(f.name) == name; });
}

/// "'aux_loss'" is aux_loss.
std::string plain_word(std::string_view word) {
  word = trim(word);
  if (word.size() >= 2 && word.front() == '\'' && word.back() == '\'') word = word.substr(1, word.size() - 2);
  return word == "True" ? "true" : word == "False" ? "false" : std::string(word);
}

}  // namespace

std::string LogArguments::word(const std::string& name) const {
  const auto at = arguments_.find(name);
  return at == arguments_.end() ? "" : at->second;
}

bool LogArguments::has(const std::string& name) const {
  const std::string value = word(name);
  return !value.empty() && value != "None";
}

int LogArguments::number(const char* name, int otherwise) const {
  if (!has(name)) return otherwise;
  const auto value = parse_int(word(name));
  if (!value || *value < 0 || *value > 1 << 30) refuse(name, "a number");
  return static_cast<int>(*value);
}

double LogArguments::share(const char* name, double otherwise) const {
  if (!has(name)) return otherwise;
  const auto value = parse_double(word(name));
  if (!value || !(*value >= 0 && *value <= 1)) refuse(name, "a number from 0 to 1");
  return *value;
}

bool LogArguments::flag(const char* name, bool otherwise) const {
  const auto at = arguments_.find(name);
  return at == arguments_.end() ? otherwise : at->second == "True";
}

std::vector<std::string> LogArguments::words(const std::string& name) const {
  std::string value = word(name);
  if (value.size() < 2 || value.front() != '[' || value.back() != ']') return {plain_word(value)};
  std::vector<std::string> out;
  for (const std::string& one : split(value.substr(1, value.size() - 2), ',')) out.push_back(plain_word(one));
  return out;
}

void LogArguments::unpriced(const std::string& name) const {
  fail(ErrorKind::kUsage, path_, ": ", name, " is ", quote(word(name)),
       ", which is not priced: the comparison would be with another run");
}

void LogArguments::refuse(const char* name, const std::string& wanted) const {
  fail(ErrorKind::kData, path_, ": ", name, " is ", quote(word(name)), ", wanted ", wanted);
}

void refuse_unpriced(const LogArguments& in, const LoggedKind& kind,
                     const std::vector<std::string>& ignored) {
  for (const PlainArgument& argument : kPlain) {
    const bool counts = argument.where == Where::kAlways ||
                        (argument.where == Where::kContext && kind.context) ||
                        (argument.where == Where::kNarrow && kind.narrow);
    if (counts && !is_plain(in.word(argument.name), argument)) in.unpriced(argument.name);
  }
  for (const auto& [name, value] : in.all()) {
    if (!kind.experts || !name.starts_with("moe_") || is_known_of_experts(name, ignored)) continue;
    const auto plain =
        std::find_if(std::begin(kPlainOfExperts), std::end(kPlainOfExperts),
                     [&wanted = name](const PlainArgument& one) { return wanted == one.name; });
    if (!is_plain(value, plain == std::end(kPlainOfExperts) ? PlainArgument{""} : *plain)) in.unpriced(name);
  }
}

}  // namespace megalith
