#include "libcore/plan/launch/launch_options.h"

#include "libcore/base/error.h"

namespace megalith {
namespace {

class Writer {
 public:
  Writer(const PlanProblem& problem, const Candidate& cut, bool ours)
      : p_(problem), c_(cut), ours_(ours || problem.tuning.finetunes) {}

  std::vector<LaunchOption> options() {
    add_sizes();
    c_.chunks > 1 ? add_chunks() : add_stages();
    decide("micro-batch-size", c_.micro_batch);
    decide("global-batch-size", c_.global_batch);
    if (c_.sequence) decide("sequence-parallel");
    add_overlaps();
    add_sharding();
    add_recompute();
    if (!ours_) add_attention();
    if (!ours_ && p_.half() && p_.software.gradient_bytes < 4) take("grad-reduce-in-bf16");
    add_precision();
    return std::move(out_);
  }

 private:
  template <class... Parts>
  void decide(const char* name, const Parts&... value) {
    out_.push_back({.name = name, .value = concat(value...)});
  }
  template <class... Parts>
  void take(const char* name, const Parts&... value) {
    out_.push_back({.name = name, .value = concat(value...), .decided = false});
  }

  void add_sizes() {
    decide("tensor-model-parallel-size", c_.tensor);
    decide("pipeline-model-parallel-size", c_.pipeline);
    if (c_.context > 1) decide("context-parallel-size", c_.context);
    if (!p_.model.has_experts()) return;
    decide("expert-model-parallel-size", c_.expert);
    decide("expert-tensor-parallel-size", c_.expert_tensor);
  }
  void add_chunks() {
    decide("num-layers-per-virtual-pipeline-stage", counted_layers(p_, c_) / c_.pipeline / c_.chunks);
    if (c_.counts_embedding) decide("account-for-embedding-in-pipeline-split");
    if (c_.counts_head) decide("account-for-loss-in-pipeline-split");
  }
  /// Stages with equally many layers need no options.
  void add_stages() {
    const int first = stage_layers(p_, c_, 0), last = stage_layers(p_, c_, c_.pipeline - 1);
    bool even = first == last, middle_even = c_.pipeline > 2;
    std::string list = std::to_string(first), layout = concat("Et*", first);
    for (int stage = 1; stage < c_.pipeline; ++stage) {
      const int layers = stage_layers(p_, c_, stage);
      even = even && layers == first;
      if (stage < c_.pipeline - 1) middle_even = middle_even && layers == stage_layers(p_, c_, 1);
      list += concat(',', layers);
      layout += concat("|t*", layers);
    }
    if (even) return;
    if (middle_even) {
      decide("decoder-first-pipeline-num-layers", first);
      decide("decoder-last-pipeline-num-layers", last);
    } else if (ours_) {
      decide("pipeline-layers", list);
    } else {
      decide("pipeline-model-parallel-layout", '"', layout, "L\"");
    }
  }
  void add_overlaps() {
    if (p_.tuning.finetunes) return;  // megalith-finetune has no options for them
    const Software& software = p_.software;
    const bool exchanged = holders(p_, c_) > 1;
    if (c_.sequence && software.overlap_tensor) take("tp-comm-overlap");
    if (exchanged && software.overlap_gradients) take("overlap-grad-reduce");
    if (exchanged && c_.sharding == Sharding::kOptimizer && software.overlap_parameters)
      take("overlap-param-gather");
    // The overlap of DualPipe is not this option, which needs chunks in a pipeline (rule E2).
    const bool dualpipe = software.schedule == Schedule::kDualPipe;
    if (p_.model.has_experts() && software.overlap_exchange && !dualpipe)
      take("overlap-moe-expert-parallel-comm");
    if (!ours_ && c_.chunks > 1 && !software.overlap_messages) take("no-overlap-p2p-communication");
  }
  /// The options for the sharding. Megatron FSDP needs its own checkpoint format.
  void add_sharding() {
    if (c_.sharding == Sharding::kOptimizer) decide("use-distributed-optimizer");
    if (c_.sharding <= Sharding::kOptimizer) return;
    if (ours_) return decide("sharding", "stage", static_cast<int>(c_.sharding));
    decide("use-megatron-fsdp");
    decide("data-parallel-sharding-strategy",
           c_.sharding == Sharding::kGradients ? "optim_grads" : "optim_grads_params");
    decide("ckpt-format", "fsdp_dtensor");
  }
  /// Writes no option for kProducts, torchtitan's kind of recomputation, since Megatron has none.
  void add_recompute() {
    if (c_.recompute == Recomputed::kAttention || c_.recompute == Recomputed::kNormAct)
      decide("recompute-granularity", "selective");
    if (c_.recompute == Recomputed::kNormAct) decide("recompute-modules", "layernorm mlp_act");
    if (c_.recompute != Recomputed::kFull) return;
    const int most = most_stage_layers(p_, c_);
    const bool all = recomputed_layers(c_, most) == most;
    decide("recompute-granularity", "full");
    decide("recompute-method", all ? "uniform" : "block");
    // Megatron counts the layers of one chunk.
    decide("recompute-num-layers", all ? 1 : recomputed_of_chunk(c_));
  }
  /// The option for an attention kernel that is not Megatron's default. Our trainer has only one kernel.
  void add_attention() {
    const AttentionKernel kernel = p_.software.attention;
    if (kernel == AttentionKernel::kFlash1 || kernel == AttentionKernel::kFlash2)
      take("attention-backend", "flash");
    if (keeps_scores(kernel)) take("attention-backend", "unfused");
    if (kernel == AttentionKernel::kTorch) take("no-masked-softmax-fusion");
  }
  void add_precision() {
    const bool half = p_.precision == Precision::kHalf, scaled = p_.precision == Precision::kMxfp8;
    if (p_.half()) take(half && p_.fp16 ? "fp16" : "bf16");
    if (p_.precision == Precision::kNvfp4) take("fp4-format", "e2m1");
    if (p_.precision != Precision::kFp8 && !scaled) return;
    take("fp8-format", !p_.fp8_format.empty() ? p_.fp8_format : scaled ? "e4m3" : "hybrid");
    if (!p_.fp8_recipe.empty() || scaled) take("fp8-recipe", p_.fp8_recipe.empty() ? "mxfp8" : p_.fp8_recipe);
  }

  const PlanProblem& p_;
  const Candidate& c_;
  bool ours_;
  std::vector<LaunchOption> out_;
};

}  // namespace

std::vector<LaunchOption> cut_options(const PlanProblem& p, const Candidate& c, bool ours) {
  return Writer(p, c, ours).options();
}

std::string launch_options(const PlanProblem& p, const Candidate& c, bool ours) {
  std::string out;
  for (const LaunchOption& option : cut_options(p, c, ours))
    out += concat(out.empty() ? "--" : " --", option.name, option.value.empty() ? "" : " ", option.value);
  return out;
}

}  // namespace megalith
