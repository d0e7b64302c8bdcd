#include "libcore/plan/request/fixed.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// torchtitan's kind of selective recomputation.
Recomputed recomputed_products(const PlanCommand& command) {
  const CodeBase& base = command.plan.base();
  if (!base.recomputes_products)
    fail(ErrorKind::kUsage, "--recompute-modules products is what torchtitan recomputes, not --software ",
         base.name, "; give core_attn, or layernorm mlp_act");
  return Recomputed::kProducts;
}

/// The kind of Megatron's selective recomputation: core attention, or norms and activation functions, which
/// are priced together.
Recomputed selected(const PlanCommand& command) {
  const std::vector<std::string>& modules = command.plan.recompute_modules;
  const auto among = [&](const char* name) {
    return std::find(modules.begin(), modules.end(), name) != modules.end();
  };
  if (modules.empty()) return Recomputed::kAttention;
  if (modules.size() == 1 && among("core_attn")) return Recomputed::kAttention;
  if (modules.size() == 2 && among("layernorm") && among("mlp_act")) return Recomputed::kNormAct;
  if (modules.size() == 1 && among("products")) return recomputed_products(command);
  fail(ErrorKind::kUsage, "--recompute-modules ", join(modules, " "),
       " is not planned; give core_attn, or layernorm mlp_act");
}

/// Checks rule R1, and refuses options of recomputation that are not priced.
void check_recompute(const PlanCommand& command) {
  const TrainConfig& train = command.train;
  const bool full = train.recompute == Recompute::kFull;
  if (!full && (train.recompute_method || train.recompute_layers))
    fail(ErrorKind::kUsage,
         "R1: --recompute-method and --recompute-num-layers need --recompute-granularity full");
  if (full && train.recompute_method != "block" && train.recompute_layers.value_or(1) != 1)
    fail(ErrorKind::kUsage, "--recompute-num-layers ", *train.recompute_layers,
         " of --recompute-method uniform is not planned: layers are recomputed one by one; give 1, or "
         "--recompute-method block");
  if (!command.plan.recompute_modules.empty() && train.recompute != Recompute::kSelective)
    fail(ErrorKind::kUsage, "--recompute-modules ", join(command.plan.recompute_modules, " "),
         " needs --recompute-granularity selective");
}

void fix_recompute(const PlanCommand& command, Fixed& fixed) {
  const TrainConfig& train = command.train;
  check_recompute(command);
  if (command.gives("recompute-granularity") || train.recompute != Recompute::kNone)
    fixed.recompute = train.recompute == Recompute::kFull        ? Recomputed::kFull
                      : train.recompute == Recompute::kSelective ? selected(command)
                                                                 : Recomputed::kNone;
  const bool block = train.recompute_method == "block";
  if (fixed.recompute == Recomputed::kFull)
    fixed.recompute_layers = block ? train.recompute_layers.value_or(0) : 0;
}

/// The sharding of Megatron FSDP's strategy; nothing if FSDP is not used.
std::optional<Sharding> fsdp_sharding(const PlanCommand& command) {
  const std::string& strategy = command.plan.sharding_strategy;
  if (!command.plan.megatron_fsdp) {
    if (!strategy.empty())
      fail(ErrorKind::kUsage, "--data-parallel-sharding-strategy ", strategy, " needs --use-megatron-fsdp");
    return std::nullopt;
  }
  if (command.gives("sharding"))
    fail(ErrorKind::kUsage,
         "--use-megatron-fsdp and --sharding set the same property; leave one of them out");
  return strategy == "optim_grads_params" ? Sharding::kParameters
         : strategy == "optim_grads"      ? Sharding::kGradients
         : strategy == "optim"            ? Sharding::kOptimizer
                                          : Sharding::kNone;
}

}  // namespace

Fixed fixed_by(const PlanCommand& command) {
  const ParallelConfig& parallel = command.parallel;
  Fixed fixed;
  const auto keep = [&](const char* option, auto& size, auto value) {
    if (command.gives(option)) size = value;
  };
  keep("tensor-model-parallel-size", fixed.tensor, parallel.tensor);
  keep("pipeline-model-parallel-size", fixed.pipeline, parallel.pipeline);
  keep("context-parallel-size", fixed.context, parallel.context);
  keep("expert-model-parallel-size", fixed.expert, parallel.expert);
  fixed.expert_tensor = command.plan.expert_tensor;
  keep("micro-batch-size", fixed.micro_batch, command.train.micro_batch);
  keep("sequence-parallel", fixed.sequence, parallel.sequence);
  keep("use-distributed-optimizer", fixed.sharding,
       parallel.distributed_optimizer ? Sharding::kOptimizer : Sharding::kNone);
  keep("sharding", fixed.sharding, parallel.sharding);
  if (const auto sharding = fsdp_sharding(command)) fixed.sharding = sharding;
  fix_recompute(command, fixed);
  return fixed;
}

}  // namespace megalith
