#include "libcore/plan/run_log.h"

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

constexpr char kStepTime[] = "elapsed time per iteration (ms):";

/// The number after `label` in a line.
std::optional<double> number_after(std::string_view line, std::string_view label) {
  const size_t at = line.find(label);
  if (at == line.npos) return std::nullopt;
  const std::string_view rest = trim(line.substr(at + label.size()));
  return parse_double(rest.substr(0, rest.find_first_of(" |,")));
}

/// "  hidden_size ......................... 4096".
void take_argument(std::string_view line, MegatronLog& log) {
  const size_t dots = line.find(" ..");
  if (dots == line.npos) return;
  const size_t end = line.find_first_not_of('.', dots + 1);
  if (end == line.npos || line[end] != ' ') return;
  const std::string_view name = trim(line.substr(0, dots));
  const size_t blank = name.rfind(' ');  // before it a rank or a time
  log.arguments[std::string(blank == name.npos ? name : name.substr(blank + 1))] =
      std::string(trim(line.substr(end)));
}

void most(std::optional<double>& value, std::optional<double> megabytes) {
  constexpr double kMiB = 1024.0 * 1024;  // Megatron's "MB"
  if (megabytes) value = std::max(value.value_or(0), *megabytes * kMiB);
}

class Arguments {
 public:
  Arguments(const MegatronLog& log, const std::string& path) : log_(log), path_(path) {}
  int number(const char* name, int otherwise) const {
    const auto at = log_.arguments.find(name);
    if (at == log_.arguments.end() || at->second == "None") return otherwise;
    const auto value = parse_int(at->second);
    if (!value || *value < 0 || *value > 1 << 30)
      fail(ErrorKind::kData, path_, ": ", name, " is ", quote(at->second), ", wanted a number");
    return static_cast<int>(*value);
  }
  bool flag(const char* name, bool otherwise) const {
    const auto at = log_.arguments.find(name);
    return at == log_.arguments.end() ? otherwise : at->second == "True";
  }
  std::string word(const char* name) const {
    const auto at = log_.arguments.find(name);
    return at == log_.arguments.end() ? "" : at->second;
  }
  /// Whether it is there and not None.
  bool has(const char* name) const { return !word(name).empty() && word(name) != "None"; }
  double share(const char* name, double otherwise) const {
    if (!has(name)) return otherwise;
    const auto value = parse_double(word(name));
    if (!value || !(*value >= 0 && *value <= 1)) refuse(name, "a number from 0 to 1");
    return *value;
  }
  template <class E>
  E choice(const char* name, E otherwise) const {
    if (!has(name)) return otherwise;
    std::string known;
    for (const auto& [word_of, value] : enum_names(otherwise)) {
      if (word(name) == word_of) return value;
      known += concat(known.empty() ? "" : ", ", word_of);
    }
    refuse(name, known);
  }
  /// kUsage: what is in the log is not priced.
  [[noreturn]] void unpriced(const char* name) const {
    fail(ErrorKind::kUsage, path_, ": ", name, " is ", quote(word(name)),
         ", which is not priced: the comparison would be with another run");
  }

 private:
  [[noreturn]] void refuse(const char* name, const std::string& wanted) const {
    fail(ErrorKind::kData, path_, ": ", name, " is ", quote(word(name)), ", wanted ", wanted);
  }

  const MegatronLog& log_;
  const std::string& path_;
};

void take_experts(const Arguments& in, ModelShape& m) {
  if (const int experts = in.number("num_experts", m.expert_count()); experts > 0) m.experts = experts;
  m.router_topk = in.number("moe_router_topk", m.router_topk);
  m.expert_ffn = in.number("moe_ffn_hidden_size", m.expert_ffn);
  m.shared_ffn = in.number("moe_shared_expert_intermediate_size", m.shared_ffn);
  if (const std::string layers = in.word("moe_layer_freq"); !layers.empty()) m.layer_freq = layers;
  m.latent_attention = in.flag("multi_latent_attention", m.latent_attention);
  m.query_rank = in.number("q_lora_rank", m.query_rank);
  m.key_rank = in.number("kv_lora_rank", m.key_rank);
  m.key_channels = in.number("qk_head_dim", m.key_channels);
  m.key_rotated = in.number("qk_pos_emb_head_dim", m.key_rotated);
  m.value_channels = in.number("v_head_dim", m.value_channels);
  m.predicted = in.number("mtp_num_layers", m.predicted);
}

void take_shape(const Arguments& in, ModelShape& m) {
  m.layers = in.number("num_layers", m.layers);
  m.hidden = in.number("hidden_size", m.hidden);
  m.heads = in.number("num_attention_heads", m.heads);
  m.kv_channels = in.number("kv_channels", m.hidden / std::max(m.heads, 1));
  m.ffn_hidden = in.number("ffn_hidden_size", m.ffn_hidden);
  m.group_query = in.flag("group_query_attention", m.group_query);
  m.query_groups = m.group_query ? in.number("num_query_groups", m.query_groups) : m.heads;
  m.seq_length = in.number("seq_length", m.seq_length);
  m.max_positions = in.number("max_position_embeddings", m.max_positions);
  m.vocab_size = in.number("padded_vocab_size", static_cast<int>(m.vocab_size));
  m.swiglu = in.flag("swiglu", m.swiglu);
  m.untied_head = in.flag("untie_embeddings_and_output_weights", m.untied_head);
  m.linear_bias = in.flag("add_bias_linear", m.linear_bias);
  if (in.has("add_bias_linear") || in.has("add_qkv_bias"))
    m.qkv_bias = m.linear_bias || in.flag("add_qkv_bias", false);
  m.qk_layernorm = in.flag("qk_layernorm", m.qk_layernorm);
  m.norm = in.choice("normalization", m.norm);
  m.position = in.choice("position_embedding_type", m.position);
  m.attention_dropout = in.share("attention_dropout", m.attention_dropout);
  m.hidden_dropout = in.share("hidden_dropout", m.hidden_dropout);
  take_experts(in, m);
  m.finish();
}

void take_recompute(const Arguments& in, Candidate& c) {
  const std::string granularity = in.word("recompute_granularity");
  if (granularity == "selective") {
    const std::string modules = in.word("recompute_modules");
    const bool norms = modules == "['layernorm', 'mlp_act']" || modules == "['mlp_act', 'layernorm']";
    if (in.has("recompute_modules") && !norms && modules != "['core_attn']") in.unpriced("recompute_modules");
    c.recompute = norms ? Recomputed::kNormAct : Recomputed::kAttention;
  }
  if (granularity != "full") return;
  c.recompute = Recomputed::kFull;
  const int layers = in.number("recompute_num_layers", 0);
  if (in.word("recompute_method") == "block")
    c.recompute_layers = layers * c.chunks;  // R1: Megatron counts in each chunk
  else if (layers > 1)
    in.unpriced("recompute_num_layers");
}

void take_sharding(const Arguments& in, Candidate& c) {
  if (in.flag("use_distributed_optimizer", false)) c.sharding = Sharding::kOptimizer;
  if (in.flag("use_torch_fsdp2", false)) in.unpriced("use_torch_fsdp2");
  if (!in.flag("use_megatron_fsdp", false) && !in.flag("use_custom_fsdp", false)) return;
  const std::string strategy = in.word("data_parallel_sharding_strategy");
  if (strategy == "optim_grads_params") c.sharding = Sharding::kParameters;
  if (strategy == "optim_grads") c.sharding = Sharding::kGradients;
  if (strategy == "optim") c.sharding = Sharding::kOptimizer;
}

/// The pipeline's cut: chunks first, which the ends' layers are counted with (L2).
void take_pipeline(const Arguments& in, const ModelShape& m, Candidate& c) {
  if (in.has("pipeline_model_parallel_layout")) in.unpriced("pipeline_model_parallel_layout");
  const bool embedding = in.flag("account_for_embedding_in_pipeline_split", false);
  const bool loss = in.flag("account_for_loss_in_pipeline_split", false);
  const int counted = m.layers + embedding + loss, stages = std::max(1, c.pipeline);
  if (const int layers = in.number("num_layers_per_virtual_pipeline_stage", 0); layers > 0)
    c.chunks = std::max(1, counted / stages / layers);
  else
    c.chunks = std::max(1, in.number("virtual_pipeline_model_parallel_size", 1));
  c.first_layers = in.number("decoder_first_pipeline_num_layers", embedding ? counted / stages - 1 : 0);
  c.last_layers = in.number("decoder_last_pipeline_num_layers", loss ? counted / stages - 1 : 0);
  c.counts_embedding = embedding;
  c.counts_head = loss;
}

/// In what it computed, and how; what the log does not say stays as the command line has it.
void take_software(const Arguments& in, PlanProblem& p) {
  if (in.has("fp8")) p.precision = in.word("fp8_recipe") == "mxfp8" ? Precision::kMxfp8 : Precision::kFp8;
  if (in.has("fp4")) p.precision = Precision::kNvfp4;
  if (in.has("bf16") && in.has("fp16") && !in.has("fp8") && !in.has("fp4"))
    p.precision = in.flag("bf16", false) || in.flag("fp16", false) ? Precision::kHalf : Precision::kFloat32;
  if (in.flag("grad_reduce_in_bf16", false)) p.software.gradient_bytes = 2;
  const std::string backend = in.word("attention_backend");
  if (backend == "AttnBackend.unfused" || backend == "AttnBackend.local")
    p.software.attention =
        in.flag("masked_softmax_fusion", true) ? AttentionKernel::kFusedSoftmax : AttentionKernel::kTorch;
  for (const char* unpriced : {"optimizer_cpu_offload", "distribute_saved_activations"})
    if (in.flag(unpriced, false)) in.unpriced(unpriced);
}

std::string compared(const char* what, double predicted, double measured, const char* unit, double scale) {
  return concat(what, ": predicted ", format_fixed(predicted / scale, 3), ' ', unit, ", measured ",
                format_fixed(measured / scale, 3), ' ', unit, ", ",
                format_fixed(100 * (predicted / measured - 1), 1), " %\n");
}

}  // namespace

bool is_run_log(const std::string& text) {
  return text.find(kStepTime) != text.npos;
}

MegatronLog read_run_log(const std::string& path) {
  return parse_run_log(read_file(path), path);
}

MegatronLog parse_run_log(const std::string& text, const std::string& path) {
  MegatronLog log;
  std::vector<double> steps;
  for (const std::string& line : split(text, '\n')) {
    take_argument(line, log);
    if (const auto ms = number_after(line, kStepTime)) steps.push_back(*ms / 1e3);
    most(log.allocated, number_after(line, "max allocated:"));
    most(log.reserved, number_after(line, "max reserved:"));
  }
  if (steps.empty())
    fail(ErrorKind::kData, path, ": no line has \"", kStepTime, "\"; it is no training log of Megatron-LM");
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 5));
  std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
  log.seconds = steps[steps.size() / 2];
  return log;
}

Json needed_of(const MegatronLog& log) {
  Json args = Json::object();
  for (const char* name : {"num_layers", "hidden_size", "num_attention_heads", "seq_length",
                           "max_position_embeddings", "global_batch_size", "world_size"})
    if (const auto at = log.arguments.find(name); at != log.arguments.end())
      if (const auto value = parse_int(at->second)) args.set(name, *value);
  return args;
}

LoggedRun logged_run(const MegatronLog& log, const PlanProblem& base, const std::string& path) {
  const Arguments in(log, path);
  LoggedRun run{base, {}};
  PlanProblem& p = run.problem;
  Candidate& c = run.candidate;
  take_shape(in, p.model);
  p.machine.world = in.number("world_size", p.machine.world);
  p.machine.local_world = std::min(p.machine.local_world, p.machine.world);
  p.max_global_batch = 0;
  p.global_batch = in.number("global_batch_size", static_cast<int>(base.global_batch));
  c.tensor = in.number("tensor_model_parallel_size", 1);
  c.pipeline = in.number("pipeline_model_parallel_size", 1);
  c.context = in.number("context_parallel_size", 1);
  c.expert = in.number("expert_model_parallel_size", 1);
  c.expert_tensor = p.model.has_experts() ? in.number("expert_tensor_parallel_size", c.tensor) : 1;
  c.micro_batch = in.number("micro_batch_size", 1);
  c.sequence = in.flag("sequence_parallel", false) && c.tensor > 1;
  take_sharding(in, c);
  take_pipeline(in, p.model, c);
  take_software(in, p);
  take_recompute(in, c);
  if (const auto rejection = complete(p, c))
    fail(ErrorKind::kData, path, ": the run it names is not legal: ", rejection->rule, ", ",
         rejection->reason);
  return run;
}

std::string verify_text(const MegatronLog& log, const LoggedRun& run) {
  const Plan plan = make_plan(run.problem, run.candidate);
  std::string out = compared("step", plan.time.total(), log.seconds, "s", 1);
  const MemoryEstimate& estimate = plan.memory.estimate;
  if (log.allocated) out += compared("most allocated", estimate.allocated(), *log.allocated, "GB", 1e9);
  if (log.reserved) out += compared("most reserved", estimate.reserved(), *log.reserved, "GB", 1e9);
  return out;
}

Coefficients anchored(const MegatronLog& log, const LoggedRun& run) {
  const Coefficients& base = *run.problem.coefficients;
  const auto scaled = [&](double factor) {
    Coefficients k = base;
    k.sustained_clock = base.sustained_clock * factor;
    k.memory_rate = base.memory_rate * factor;
    return k;
  };
  const auto seconds = [&](double factor) {
    const Coefficients k = scaled(factor);
    PlanProblem p = run.problem;
    p.coefficients = &k;
    return make_plan(p, run.candidate).time.total();
  };
  double low = 0.3,
         high = 1.18;  // of the rates: a run that needs others is another machine, or another program
  if (seconds(low) < log.seconds || seconds(high) > log.seconds)
    fail(ErrorKind::kUsage, "--anchor: the run took ", format_fixed(log.seconds, 3),
         " s a step and is predicted with ", format_fixed(seconds(1), 3),
         " s; no rates of this device explain that");
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (seconds(middle) > log.seconds ? low : high) = middle;
  }
  return scaled(0.5 * (low + high));
}

}  // namespace megalith
