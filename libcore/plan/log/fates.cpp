#include "libcore/plan/log/fates.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace megalith {
namespace {

/// How a router chooses and which kernels run: a plan is the same.
constexpr IgnoredOption kExperts[] = {{"moe-apply-probs-on-input"},
                                      {"moe-deepep-num-sms", IgnoredOption::kOne},
                                      {"moe-grouped-gemm", IgnoredOption::kMaybeOne},
                                      {"moe-per-layer-logging"},
                                      {"moe-permute-fusion", IgnoredOption::kMaybeOne},
                                      {"moe-router-bias-update-rate", IgnoredOption::kOne},
                                      {"moe-router-dtype", IgnoredOption::kOne},
                                      {"moe-router-fusion"},
                                      {"moe-router-padding-for-fp8"},
                                      {"moe-router-pre-softmax"},
                                      {"moe-router-topk-scaling-factor", IgnoredOption::kOne},
                                      {"moe-token-drop-policy", IgnoredOption::kOne},
                                      {"moe-z-loss-coeff", IgnoredOption::kOne},
                                      {"mscale", IgnoredOption::kOne},
                                      {"mscale-all-dim", IgnoredOption::kOne},
                                      {"mtp-loss-scaling-factor", IgnoredOption::kOne},
                                      {"rotary-scaling-factor", IgnoredOption::kOne}};

constexpr RefusedOption kMixtures[] = {{"moe-*", "it is not planned; leave it out"}};

/// They move memory or time on a GPU, so that a plan without them would be of another run.
constexpr RefusedOption kUnplanned[] = {
    {"cp-comm-type", "keys and values go round in a ring (p2p), which is what is priced; leave it out"},
    {"distribute-checkpointed-activations", "give --sequence-parallel"},
    {"distribute-saved-activations",
     "each tensor rank keeps the whole of a recomputed layer's input; give --sequence-parallel"},
    {"hierarchical-context-parallel-sizes", "context ranks are one ring; leave it out"},
    {"microbatch-group-size-per-virtual-pipeline-stage",
     "a group has as many microbatches as the pipeline has stages; leave it out"},
    {"optimizer-cpu-offload", "the optimizer's state is on the device; give --use-distributed-optimizer"},
    {"optimizer-offload-fraction", "the optimizer's state is on the device; leave it out"},
    {"overlap-cpu-optimizer-d2h-h2d", "the optimizer's state is on the device; leave it out"},
    {"standalone-embedding-stage", "give --account-for-embedding-in-pipeline-split"},
    {"use-tp-pp-dp-mapping", "ranks are numbered tensor, context, data, pipeline; leave it out"},
};

}  // namespace

std::span<const IgnoredOption> ignored_expert_options() {
  return kExperts;
}

void add_fates(Options& options, bool trains_here) {
  std::vector<IgnoredOption> ignored;
  for (const IgnoredOption& option : ignored_megatron_options())
    if (trains_here ||
        std::none_of(std::begin(kUnplanned), std::end(kUnplanned),
                     [&](const RefusedOption& r) { return std::string_view(r.name) == option.name; }))
      ignored.push_back(option);
  options.ignore(ignored).ignore(kExperts);
  if (!trains_here) options.refuse(kUnplanned);
  options.refuse(kMixtures).refuse(refused_megatron_options());
}

}  // namespace megalith
