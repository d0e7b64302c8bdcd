#include "libcore/plan/request/fixed.h"

#include <algorithm>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The layers of each stage of Megatron's table, such as Et*7|t*8|t*7L.
std::vector<int> stages_of_layout(const std::string& layout) {
  const std::vector<std::string> stages = split(layout, '|');
  std::vector<int> layers;
  for (const std::string& stage : stages) {
    std::string_view rest = stage;
    if (layers.empty() && rest.starts_with('E')) rest.remove_prefix(1);
    if (layers.size() + 1 == stages.size() && rest.ends_with('L')) rest.remove_suffix(1);
    std::optional<int64_t> count;
    if (rest.starts_with("t*"))
      count = parse_int(rest.substr(2));
    else if (rest.find_first_not_of('t') == std::string_view::npos)
      count = static_cast<int64_t>(rest.size());
    if (!count || *count < 1 || *count > ModelShape::kMostLayers)
      fail(ErrorKind::kUsage, "--pipeline-model-parallel-layout ", quote(layout), ": stage ", quote(stage),
           " is not planned; wanted E before the first, L after the last, and t*N in each, such as "
           "Et*7|t*8|t*7L");
    layers.push_back(static_cast<int>(*count));
  }
  return layers;
}

void check_pipeline_options(const PlanCommand& command) {
  const ParallelConfig& parallel = command.parallel;
  const bool table = !parallel.pipeline_layers.empty() || !command.plan.pipeline_layout.empty();
  if (table && (parallel.first_layers || parallel.last_layers || command.plan.account_embedding ||
                command.plan.account_loss))
    fail(ErrorKind::kUsage,
         "--pipeline-layers or --pipeline-model-parallel-layout names every stage; leave out the options for "
         "the first and the last");
}

/// The layers that were named for a stage, of which a model has as many at least.
std::optional<int> layers_of_stage(const char* option, std::optional<int> named, int layers) {
  if (named && *named > layers)
    fail(ErrorKind::kUsage, "--", option, ' ', *named, " is more than the ", layers, " layers of the model");
  return named;
}

/// As many stages as there are in a table.
void take_stages(PlanRequest& request) {
  Fixed& fixed = request.fixed;
  if (const auto stages = static_cast<int>(request.problem.stage_layers.size()); stages > 0) {
    if (fixed.pipeline && *fixed.pipeline != stages)
      fail(ErrorKind::kUsage, "the table of the pipeline has ", stages,
           " stages, --pipeline-model-parallel-size is ", *fixed.pipeline,
           "; tables of interleaved stages are not planned");
    fixed.pipeline = stages;
  }
}

void fix_pipeline(const PlanCommand& command, PlanRequest& request) {
  const PlanOptions& plan = command.plan;
  Fixed& fixed = request.fixed;
  fixed.first_layers = layers_of_stage("decoder-first-pipeline-num-layers", command.parallel.first_layers,
                                       command.model.layers);
  fixed.last_layers =
      layers_of_stage("decoder-last-pipeline-num-layers", command.parallel.last_layers, command.model.layers);
  const std::vector<std::string>& given = command.parallel.pipeline_layers;
  for (const std::string& word : given.empty() ? given : split(join(given, ","), ',')) {
    const auto layers = parse_int(word);
    if (!layers || *layers < 1 || *layers > command.model.layers)
      fail(ErrorKind::kUsage, "--pipeline-layers: ", quote(word), " is no number of layers from 1 to ",
           command.model.layers, " (--num-layers)");
    request.problem.stage_layers.push_back(static_cast<int>(*layers));
  }
  if (!plan.pipeline_layout.empty()) {
    if (!given.empty())
      fail(ErrorKind::kUsage,
           "--pipeline-model-parallel-layout and --pipeline-layers say the same; leave one of them out");
    request.problem.stage_layers = stages_of_layout(plan.pipeline_layout);
  }
  take_stages(request);
  check_pipeline_options(command);
  const int layers = command.model.layers + plan.account_embedding + plan.account_loss;
  if (plan.account_embedding || plan.account_loss) {
    if (!fixed.pipeline)
      fail(ErrorKind::kUsage,
           "--account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split need "
           "--pipeline-model-parallel-size");
    if (layers % *fixed.pipeline != 0)
      fail(ErrorKind::kUsage, "L2: ", layers,
           " layers, embedding and head counted, are not a multiple of pipeline ", *fixed.pipeline,
           nearest_multiples(layers, *fixed.pipeline));
    if (command.parallel.first_layers || command.parallel.last_layers)
      fail(
          ErrorKind::kUsage,
          "--decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers say what "
          "--account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split say, too; give "
          "one of them");
    const int counted = layers / *fixed.pipeline;
    if (plan.account_embedding) fixed.first_layers = counted - 1;
    if (plan.account_loss) fixed.last_layers = counted - 1;
    fixed.counts_embedding = plan.account_embedding;
    fixed.counts_head = plan.account_loss;
  }
  if (const auto& per_chunk = command.parallel.layers_per_chunk) {
    if (!fixed.pipeline)
      fail(ErrorKind::kUsage, "--num-layers-per-virtual-pipeline-stage needs --pipeline-model-parallel-size");
    const int64_t together = int64_t{*per_chunk} * *fixed.pipeline;
    if (layers % together != 0)
      fail(ErrorKind::kUsage, "V1: ", layers, " layers are not a multiple of pipeline ", *fixed.pipeline,
           " * ", *per_chunk, " of --num-layers-per-virtual-pipeline-stage");
    fixed.chunks = static_cast<int>(layers / together);
  }
}

/// What Megatron's selective recomputation takes: the core attention, or those that are priced together.
Recomputed selected(const PlanCommand& command) {
  const std::vector<std::string>& modules = command.plan.recompute_modules;
  const auto among = [&](const char* name) {
    return std::find(modules.begin(), modules.end(), name) != modules.end();
  };
  if (modules.empty() || command.trains_here) return Recomputed::kAttention;
  if (modules.size() == 1 && among("core_attn")) return Recomputed::kAttention;
  if (modules.size() == 2 && among("layernorm") && among("mlp_act")) return Recomputed::kNormAct;
  fail(ErrorKind::kUsage, "--recompute-modules ", join(modules, " "),
       " is not planned; give core_attn, or layernorm mlp_act");
}

/// R1, and what is not priced.
void check_recompute(const PlanCommand& command, const TrainConfig& train) {
  const bool full = train.recompute == Recompute::kFull;
  if (!full && (train.recompute_method || train.recompute_layers))
    fail(ErrorKind::kUsage,
         "R1: --recompute-method and --recompute-num-layers need --recompute-granularity full");
  if (full && train.recompute_method != "block" && train.recompute_layers.value_or(1) != 1)
    fail(ErrorKind::kUsage, "--recompute-num-layers ", *train.recompute_layers,
         " of --recompute-method uniform is not planned: layers are recomputed one by one; give 1, or "
         "--recompute-method block");
  if (!command.plan.recompute_modules.empty() && train.recompute != Recompute::kSelective &&
      !command.trains_here)
    fail(ErrorKind::kUsage, "--recompute-modules ", join(command.plan.recompute_modules, " "),
         " needs --recompute-granularity selective");
}

void fix_recompute(const PlanCommand& command, const Options& given, Fixed& fixed) {
  TrainConfig train = command.train;
  train.finish();  // of the short forms; the group is not checked here
  check_recompute(command, train);
  if (given.given("recompute-granularity") || train.recompute != Recompute::kNone)
    fixed.recompute = train.recompute == Recompute::kFull        ? Recomputed::kFull
                      : train.recompute == Recompute::kSelective ? selected(command)
                                                                 : Recomputed::kNone;
  const bool block = train.recompute_method == "block";
  if (fixed.recompute == Recomputed::kFull)
    fixed.recompute_layers = block ? train.recompute_layers.value_or(0) : 0;
}

/// Megatron FSDP cuts what its strategy says; nothing where it is not used.
std::optional<Sharding> fsdp_sharding(const PlanOptions& plan, const Options& given) {
  const std::string& strategy = plan.sharding_strategy;
  if (!plan.megatron_fsdp) {
    if (!strategy.empty())
      fail(ErrorKind::kUsage, "--data-parallel-sharding-strategy ", strategy, " needs --use-megatron-fsdp");
    return std::nullopt;
  }
  if (given.given("sharding"))
    fail(ErrorKind::kUsage, "--use-megatron-fsdp and --sharding say the same; leave one of them out");
  return strategy == "optim_grads_params" ? Sharding::kParameters
         : strategy == "optim_grads"      ? Sharding::kGradients
         : strategy == "optim"            ? Sharding::kOptimizer
                                          : Sharding::kNone;
}

Fixed fixed_by(const PlanCommand& command, const Options& given) {
  Fixed fixed;
  if (given.given("tensor-model-parallel-size")) fixed.tensor = command.parallel.tensor;
  if (given.given("pipeline-model-parallel-size")) fixed.pipeline = command.parallel.pipeline;
  if (given.given("context-parallel-size")) fixed.context = command.parallel.context;
  if (given.given("expert-model-parallel-size")) fixed.expert = command.parallel.expert;
  fixed.expert_tensor = command.plan.expert_tensor;
  if (given.given("micro-batch-size")) fixed.micro_batch = command.train.micro_batch;
  if (given.given("sequence-parallel")) fixed.sequence = command.parallel.sequence;
  if (given.given("use-distributed-optimizer"))
    fixed.sharding = command.parallel.distributed_optimizer ? Sharding::kOptimizer : Sharding::kNone;
  if (given.given("sharding")) fixed.sharding = command.parallel.sharding;
  if (const auto sharding = fsdp_sharding(command.plan, given)) fixed.sharding = sharding;
  fix_recompute(command, given, fixed);
  return fixed;
}

}  // namespace

void fix_sizes(const PlanCommand& command, const Options& given, PlanRequest& request) {
  request.fixed = fixed_by(command, given);
  fix_pipeline(command, request);
}

namespace {

/// --attention-backend, or what the older options of Megatron and PaddleNLP say of it; kUsage where they
/// contradict each other.
std::string backend_of(const PlanOptions& plan, bool kernel_given) {
  const std::string& backend = plan.attention_backend;
  const bool flash = plan.flash_attention.value_or(false), local = plan.transformer_impl == "local";
  const bool unfused = plan.flash_attention ? !flash : local;
  const char* const option = plan.flash_attention ? "--use-flash-attn false" : "--transformer-impl local";
  if (unfused && (kernel_given || backend == "flash" || backend == "fused"))
    fail(ErrorKind::kUsage, option, " keeps the scores, ",
         kernel_given ? "and --attention-kernel says how" : "--attention-backend " + backend + " does not",
         "; leave one of them out");
  if (flash && (backend == "unfused" || backend == "local"))
    fail(ErrorKind::kUsage, "--use-flash-attn and --attention-backend ", backend,
         " contradict each other; leave one of them out");
  const bool chosen = !backend.empty() && backend != "auto";
  return chosen || !unfused ? backend : "unfused";
}

}  // namespace

AttentionKernel attention_of(const PlanCommand& command, const Options& given) {
  const PlanOptions& plan = command.plan;
  if (plan.gpu == "local") return plan.attention;  // our trainer has one way
  const std::string backend = backend_of(plan, given.given("attention-kernel"));
  const bool kept = backend == "unfused" || backend == "local";
  if (!plan.attention_backend.empty() && given.given("attention-kernel"))
    fail(ErrorKind::kUsage, "--attention-backend and --attention-kernel say the same; leave one of them out");
  if (!plan.softmax_fusion && !kept && plan.attention != AttentionKernel::kTorch)
    fail(ErrorKind::kUsage,
         "--no-masked-softmax-fusion changes nothing where no scores are kept; give --attention-backend "
         "unfused, or leave it out");
  if (kept) return plan.softmax_fusion ? AttentionKernel::kFusedSoftmax : AttentionKernel::kTorch;
  return backend == "flash" ? AttentionKernel::kFlash2 : plan.attention;
}

}  // namespace megalith
