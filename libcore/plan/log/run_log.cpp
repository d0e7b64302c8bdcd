#include "libcore/plan/log/run_log.h"

#include <algorithm>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/text.h"
#include "libcore/dialects/megatron/pipeline_layout.h"
#include "libcore/io/files/file.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/log/log_arguments.h"
#include "libcore/plan/log/logged_shape.h"
#include "libcore/plan/price/rules.h"
#include "libcore/plan/report/plan_json.h"

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

/// Takes a line such as "  hidden_size ......................... 4096".
void take_argument(std::string_view line, MegatronLog& log) {
  const size_t dots = line.find(" ..");
  if (dots == line.npos) return;
  const size_t end = line.find_first_not_of('.', dots + 1);
  if (end == line.npos || line[end] != ' ') return;
  const std::string_view name = trim(line.substr(0, dots));
  const size_t blank = name.rfind(' ');  // a rank or a time may precede the name
  log.arguments[std::string(blank == name.npos ? name : name.substr(blank + 1))] =
      std::string(trim(line.substr(end)));
}

void most(std::optional<double>& value, std::optional<double> megabytes) {
  constexpr double kMiB = 1024.0 * 1024;  // Megatron's "MB"
  if (megabytes) value = std::max(value.value_or(0), *megabytes * kMiB);
}

void take_recompute(const LogArguments& in, Candidate& c) {
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
    c.recompute_layers = layers * c.chunks;  // R1: Megatron counts the layers of one chunk
  else if (layers > 1)
    in.unpriced("recompute_num_layers");
}

void take_sharding(const LogArguments& in, Candidate& c) {
  if (in.flag("use_distributed_optimizer", false)) c.sharding = Sharding::kOptimizer;
  if (!in.flag("use_megatron_fsdp", false) && !in.flag("use_custom_fsdp", false)) return;
  const std::string strategy = in.word("data_parallel_sharding_strategy");
  if (strategy == "optim_grads_params") c.sharding = Sharding::kParameters;
  if (strategy == "optim_grads") c.sharding = Sharding::kGradients;
  if (strategy == "optim") c.sharding = Sharding::kOptimizer;
}

/// Takes the pipeline's partition. An embedding or a loss that counts as a layer (L2) leaves its stage one
/// layer less, unless the log gives that stage's layers.
void take_pipeline(const LogArguments& in, const ModelShape& m, Candidate& c) {
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

/// Takes the layers of each stage from the table in the log, if there is one.
void take_layout(const LogArguments& in, const Candidate& c, PlanProblem& p) {
  constexpr char kLayout[] = "pipeline_model_parallel_layout";
  p.stage_layers.clear();
  if (!in.has(kLayout)) return;
  p.stage_layers =
      stages_of_layout(in.word(kLayout), ModelShape::kMostLayers, concat(in.path(), ": ", kLayout));
  if (p.stage_layers.size() != static_cast<size_t>(c.pipeline) || c.chunks > 1)
    in.unpriced(kLayout);  // tables of interleaved stages are not priced
}

/// The precision of the run. kUsage when the device does not support it.
void take_precision(const LogArguments& in, PlanProblem& p) {
  if (in.has("fp8")) p.precision = in.word("fp8_recipe") == "mxfp8" ? Precision::kMxfp8 : Precision::kFp8;
  if (in.has("fp4")) p.precision = Precision::kNvfp4;
  if (in.has("bf16") && in.has("fp16") && !in.has("fp8") && !in.has("fp4"))
    p.precision = in.flag("bf16", false) || in.flag("fp16", false) ? Precision::kHalf : Precision::kFloat32;
  const Accelerator& device = p.machine.device;
  const char* lacking = missing_products(device, p.precision);
  if (in.flag("bf16", false) && !device.bfloat16) lacking = "products in bf16";
  if (lacking)
    fail(ErrorKind::kUsage, in.path(), ": ", device.name, " has no ", lacking,
         ", in which the run computed; give the --gpu that it ran on");
}

/// Takes the way the program works. Arguments that the log lacks keep the values of the command line.
void take_software(const LogArguments& in, Software& software) {
  if (in.flag("grad_reduce_in_bf16", false)) software.gradient_bytes = 2;
  software.overlap_messages = in.flag("overlap_p2p_comm", software.overlap_messages);
  software.overlap_gradients = in.flag("overlap_grad_reduce", software.overlap_gradients);
  software.overlap_parameters =  // O1
      software.overlap_gradients && in.flag("overlap_param_gather", software.overlap_parameters);
  software.overlap_tensor = in.flag("tp_comm_overlap", software.overlap_tensor);
  software.overlap_exchange = in.flag("overlap_moe_expert_parallel_comm", software.overlap_exchange);
  const std::string backend = in.word("attention_backend");
  if (backend == "AttnBackend.unfused" || backend == "AttnBackend.local")
    software.attention =
        in.flag("masked_softmax_fusion", true) ? AttentionKernel::kFusedSoftmax : AttentionKernel::kTorch;
  if (backend == "AttnBackend.flash") software.attention = AttentionKernel::kFlash2;
}

/// Refuses arguments that change memory or time and have no price.
void refuse_others(const LogArguments& in, const PlanProblem& p, const Candidate& c) {
  const bool narrow = p.half() && p.precision != Precision::kHalf;
  refuse_unpriced(in, {.context = c.context > 1,
                       .experts = p.model.has_experts(),
                       .narrow = narrow,
                       .interleaved = c.chunks > 1});
}

/// A measured figure of the run, and its prediction.
struct Comparison {
  const char *what, *member, *unit;
  double predicted, measured, scale;  // verify_text() prints both divided by `scale`
  double percent() const { return 100 * (predicted / measured - 1); }
};

std::vector<Comparison> comparisons(const MegatronLog& log, const LoggedRun& run) {
  const Plan plan = make_plan(run.problem, run.candidate);
  const MemoryEstimate& estimate = plan.memory.estimate;
  std::vector<Comparison> out = {{"step", "step_seconds", "s", plan.time.total(), log.seconds, 1}};
  if (log.allocated)
    out.push_back({"most allocated", "allocated_bytes", "GB", estimate.allocated(), *log.allocated, 1e9});
  if (log.reserved)
    out.push_back({"most reserved", "reserved_bytes", "GB", estimate.reserved(), *log.reserved, 1e9});
  return out;
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
    fail(ErrorKind::kData, path, ": no line has \"", kStepTime,
         "\"; it is not a training log of Megatron-LM");
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 5));
  log.seconds = quantile(std::move(steps), 0.5);
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
  const LogArguments in(log.arguments, path);
  LoggedRun run{base, {}};
  PlanProblem& p = run.problem;
  Candidate& c = run.candidate;
  p.model = logged_shape(in, p.model);
  p.machine.world = in.number("world_size", p.machine.world);
  set_local_world(p.machine, std::min(p.machine.local_world, p.machine.world));
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
  take_layout(in, c, p);
  take_precision(in, p);
  take_software(in, p.software);
  take_recompute(in, c);
  refuse_others(in, p, c);
  if (const auto rejection = complete(p, c))
    fail(ErrorKind::kData, path, ": the run it describes is not legal: ", rejection->rule, ", ",
         rejection->reason);
  return run;
}

std::string verify_text(const MegatronLog& log, const LoggedRun& run) {
  std::string out;
  for (const Comparison& c : comparisons(log, run))
    out += concat(c.what, ": predicted ", format_fixed(c.predicted / c.scale, 3), ' ', c.unit, ", measured ",
                  format_fixed(c.measured / c.scale, 3), ' ', c.unit, ", ", format_fixed(c.percent(), 1),
                  " %\n");
  return out;
}

std::string verify_json(const MegatronLog& log, const LoggedRun& run) {
  Json root = Json::object();
  for (const Comparison& c : comparisons(log, run)) {
    Json figures = Json::object();
    figures.set("predicted", figure(c.predicted));
    figures.set("measured", figure(c.measured));
    figures.set("percent", figure(c.percent()));
    root.set(c.member, std::move(figures));
  }
  root.set("device", run.problem.machine.device.name);
  root.set("devices", run.problem.machine.world);
  root.set("options", launch_options(run.problem, run.candidate));
  return root.dump(2) + '\n';
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
         high = 1.18;  // bounds of the factor: beyond them the run is of another machine or program
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
