#include "libcore/plan/search/explain.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/search/goal.h"

namespace megalith {
namespace {

PlanProblem with(const PlanProblem& p, double Accelerator::*rate, double factor) {
  PlanProblem out = p;
  out.machine.device.*rate *= factor;
  return out;
}

/// The first of 1, 2, 4 … devices, the problem's own, and their doubles for which `exists`; 0: none.
int least_devices(const PlanProblem& p, const auto& exists) {
  constexpr int kFarther = 64;  // times the problem's own
  const int64_t all = p.machine.world;
  const int64_t most = std::min<int64_t>(kFarther * all, ParallelConfig::kMaxRanks);
  for (int64_t world = 1; world <= most; world = world < all ? std::min(2 * world, all) : 2 * world)
    if (exists(with_devices(p, static_cast<int>(world)))) return static_cast<int>(world);
  return 0;
}

}  // namespace

std::vector<Sensitivity> sensitivity(const PlanProblem& p, const std::vector<Plan>& plans) {
  static constexpr std::pair<const char*, double Accelerator::*> kRates[] = {
      {"matrix rate", &Accelerator::half_flops},
      {"memory bandwidth", &Accelerator::memory_bandwidth},
      {"link bandwidth", &Accelerator::link_bandwidth},
      {"network bandwidth", &Accelerator::network_bandwidth}};
  std::vector<Sensitivity> out;
  if (plans.empty()) return out;
  for (const auto& entry : kRates) {
    Sensitivity s{.what = entry.first};
    const auto rate = entry.second;
    const auto look = [&](double factor, double& seconds, int& winner) {
      PlanProblem changed = with(p, rate, factor);
      if (rate == &Accelerator::half_flops) {  // the watts per FLOP/s stay the same
        changed.machine.device.watts *= factor;
        changed.machine.device.fp8_flops *= factor;
        changed.machine.device.fp4_flops *= factor;
        changed.machine.device.float_flops *= factor;
      }
      double most = 0;
      for (size_t i = 0; i < plans.size(); ++i) {
        const Plan plan{plans[i].candidate, plans[i].memory, step_time(changed, plans[i].candidate)};
        if (i == 0) seconds = plan.time.total();
        if (plan.tokens_per_second(changed) > most) {
          most = plan.tokens_per_second(changed);
          winner = static_cast<int>(i);
        }
      }
    };
    look(0.9, s.less, s.winner_less);
    look(1.1, s.more, s.winner_more);
    out.push_back(s);
  }
  return out;
}

std::vector<Plan> pareto_front(const PlanProblem& p, const Fixed& fixed) {
  constexpr size_t kMax = 12;
  // The next plan must need less than this share of the memory of the previous one.
  constexpr double kStep = 0.97;
  std::vector<Plan> out;
  PlanProblem less = p;
  while (out.size() < kMax) {
    const SearchResult found = search_beside_saves(less, fixed, 1);
    if (found.plans.empty()) break;
    out.push_back(found.plans.front());
    less.machine.device.memory *= kStep * found.plans.front().memory.estimate.needed() / allowed_memory(less);
  }
  return out;
}

Inverse inverse_questions(const PlanProblem& p, const Fixed& fixed) {
  const auto exists = [&](PlanProblem changed) {
    return !search_beside_saves(changed, fixed, 1).plans.empty();
  };
  Inverse out;
  out.least_devices = least_devices(p, exists);
  for (int times = 1; times <= 1024; times *= 2) {
    PlanProblem longer = p;
    longer.model.seq_length = longer.model.max_positions = p.model.seq_length * times;
    if (!exists(longer)) break;
    out.longest_sequence = longer.model.seq_length;
  }
  int low = 0, high = p.model.layers;
  const auto deep = [&](int layers) {
    PlanProblem deeper = p;
    deeper.model.layers = layers;
    deeper.trained_here = false;  // the trainer's own count would run thousands of layers for each candidate
    return exists(deeper);
  };
  while (high <= 1 << 14 && deep(high)) {
    low = high;
    high *= 2;
  }
  // The closed forms may find no plan of the model itself where the trainer's count does, as for
  // longest_sequence. The model's own layers are then the answer.
  out.most_layers = std::max(low, out.longest_sequence > 0 ? p.model.layers : 0);
  return out;
}

std::string bottleneck(const PlanProblem& p, const Plan& plan) {
  const Candidate& c = plan.candidate;
  const StepTime& t = plan.time;
  const std::pair<double, const char*> parts[] = {
      {t.compute, "the devices' own work"},
      {t.recompute, "recomputation"},
      {t.tensor_comm, c.tensor > 1 ? "tensor-parallel communication" : "context-parallel communication"},
      {t.expert_comm, "the tokens' way to their experts"},
      {t.pipeline_comm, "pipeline messages"},
      {t.bubble, "the pipeline's bubble"},
      {t.data_comm, "data-parallel communication"},
      {t.optimizer, "the optimizer"}};
  const auto most = std::max_element(std::begin(parts), std::end(parts),
                                     [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out =
      concat(most->second, ", ", format_fixed(100 * most->first / t.total(), 0), " % of the step");
  const auto next = std::max_element(std::begin(parts) + 1, std::end(parts),
                                     [](const auto& a, const auto& b) { return a.first < b.first; });
  if (most == std::begin(parts) && next->first > 0)
    out += concat("; then ", next->second, ", ", format_fixed(100 * next->first / t.total(), 0), " %");
  if (c.pipeline == 1) return out;
  const LayerPrice price = price_layer(p, shape_of(c));
  const double slowest = stage_seconds(c, price, stage_kind(p, c, price, t.bottleneck));
  double sum = 0;
  for (int stage = 0; stage < c.pipeline; ++stage)
    sum += stage_seconds(c, price, stage_kind(p, c, price, stage));
  const bool head = t.bottleneck == c.pipeline - 1;
  return out + concat("; slowest stage ", t.bottleneck, head ? " (with the head)" : "", ", ",
                      format_fixed(100 * (slowest * c.pipeline / sum - 1), 1), " % over the mean");
}

}  // namespace megalith
