#include "libcore/plan/price/stages.h"

#include <algorithm>
#include <cmath>

namespace megalith {
namespace {

/// The weighted mean of the costs of two layers: `share` is the weight of the second.
LayerCost between(const LayerCost& first, const LayerCost& second, double share) {
  constexpr double LayerCost::*kAll[] = {&LayerCost::forward,
                                         &LayerCost::backward,
                                         &LayerCost::forward_comm,
                                         &LayerCost::backward_comm,
                                         &LayerCost::forward_exchange,
                                         &LayerCost::backward_exchange,
                                         &LayerCost::again_attention,
                                         &LayerCost::again_norm_act,
                                         &LayerCost::again_products,
                                         &LayerCost::again_full,
                                         &LayerCost::kept,
                                         &LayerCost::kept_attention,
                                         &LayerCost::kept_norm_act,
                                         &LayerCost::kept_products,
                                         &LayerCost::kept_full};
  static_assert(sizeof(kAll) / sizeof(*kAll) * sizeof(double) == sizeof(LayerCost));
  LayerCost out;
  for (const auto part : kAll) out.*part = (1 - share) * first.*part + share * second.*part;
  return out;
}

/// The kinds of stages in order. Adjacent middle stages with equal layers are one kind, unless the user gave
/// the layers of the stages.
std::vector<Layout::Kind> every_stage(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  std::vector<Layout::Kind> kinds;
  for (int stage = 0; stage < c.pipeline; ++stage) {
    const Layout::Kind kind = stage_kind(p, c, price, stage);
    const bool apart = !p.stage_layers.empty() || stage <= 1 || stage == c.pipeline - 1;
    if (!apart && kinds.back().layers == kind.layers && kinds.back().plain == kind.plain)
      ++kinds.back().times;
    else
      kinds.push_back(kind);
  }
  return kinds;
}

std::vector<Layout::Kind> stage_kinds(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  if (!p.stage_layers.empty() || p.model.plain_layers(p.model.layers) > 0) return every_stage(p, c, price);
  std::vector<Layout::Kind> kinds;
  const int last = c.pipeline - 1;
  const auto add = [&](int stage, int times) {
    if (times > 0) kinds.push_back({stage, stage_layers(p, c, stage), static_cast<double>(times)});
  };
  add(0, 1);
  if (last > 1) {  // the middle stages differ by at most one layer, and the later ones have more
    const int few = stage_layers(p, c, 1), many = stage_layers(p, c, last - 1), middle = last - 1;
    const int inside = p.model.layers - stage_layers(p, c, 0) - stage_layers(p, c, last);
    const int more = many > few ? inside - middle * few : 0;
    add(1, middle - more);
    add(last - more, more);
  }
  if (last > 0) add(last, 1);
  return kinds;
}

}  // namespace

Layout::Kind stage_kind(const PlanProblem& p, const Candidate& c, const LayerPrice& price, int stage) {
  Layout::Kind kind{.stage = stage,
                    .layers = stage_layers(p, c, stage),
                    .times = 1,
                    .plain = stage_plain_layers(p, c, stage)};
  if (kind.plain > 0) kind.mean = between(price, price.plain, static_cast<double>(kind.plain) / kind.layers);
  return kind;
}

Layout layout_of(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  Layout out;
  out.kinds = stage_kinds(p, c, price);
  const int last = c.pipeline - 1, stride = c.tensor * c.context * c.data;
  out.data = group_link(p, c.data * c.context, c.tensor);
  constexpr int kNeighbours = 2;
  out.message = group_link(p, kNeighbours, stride);
  if (p.model.has_experts()) out.expert_data = group_link(p, c.expert_data(), c.expert * c.expert_tensor);
  if (last > 0 && price.trained.head_copy > 0) {
    constexpr double kFp32 = 4;  // bytes
    constexpr int kEnds = 2;     // the first and the last stage each have a copy
    const double bytes = (p.half() ? p.software.gradient_bytes : kFp32) * price.trained.head_copy;
    out.tied = kHalvesOfAllReduce * ring_seconds(bytes, kEnds, group_link(p, kEnds, stride * last)) +
               ordered_sum_seconds(p, bytes, kEnds);
  }
  const double machines = static_cast<double>(p.machine.world) / p.machine.local_world;
  out.machine_doublings = machines > 1 ? std::log2(machines) : 0;
  return out;
}

}  // namespace megalith
