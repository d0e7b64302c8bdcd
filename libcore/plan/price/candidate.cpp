#include "libcore/plan/price/candidate.h"

#include <algorithm>
#include <numeric>

namespace megalith {

int counted_layers(const PlanProblem& p, const Candidate& c) {
  return p.model.layers + c.counts_embedding + c.counts_head;
}

int holders(const PlanProblem& p, const Candidate& c) {
  return std::max(c.data * c.context, p.model.has_experts() ? c.expert_data() : 1);
}

Sharding counted_sharding(const PlanProblem& p, const Candidate& c) {
  const bool once = c.pipeline > 1 && p.software.pipelines_gather_once;
  return once ? std::min(c.sharding, Sharding::kOptimizer) : c.sharding;
}

int stage_layers(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.stage_layers.empty()) return p.stage_layers[static_cast<size_t>(stage)];
  if (stage == 0 && c.first_layers > 0) return c.first_layers;
  if (stage == c.pipeline - 1 && c.last_layers > 0) return c.last_layers;
  const int others = c.pipeline - (c.first_layers > 0) - (c.last_layers > 0);
  const int between = p.model.layers - c.first_layers - c.last_layers;
  const int each = between / others, more = between % others;
  if (more == 0) return each;
  // The late stages take the extra layers, since they hold few microbatches. The pipeline's last stage takes
  // none, since it may have the head.
  const int place = stage - (c.first_layers > 0), end = others - (c.last_layers > 0 ? 0 : 1);
  return each + (place < end && place >= end - more ? 1 : 0);
}

namespace {

/// The number of layers of all stages before this one.
int layers_before(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.stage_layers.empty())
    return std::accumulate(p.stage_layers.begin(), p.stage_layers.begin() + stage, 0);
  const int lead = c.first_layers > 0 ? 1 : 0;
  if (stage <= lead) return stage == 0 ? 0 : stage_layers(p, c, 0);
  const int others = c.pipeline - lead - (c.last_layers > 0);
  const int between = p.model.layers - c.first_layers - c.last_layers;
  const int each = between / others, more = between % others;
  // As in stage_layers(), the late ones of these stages have one layer more.
  const int places = stage - lead, end = others - (c.last_layers > 0 ? 0 : 1);
  const int larger = std::clamp(places - (end - more), 0, more);
  return c.first_layers + each * places + larger;
}

}  // namespace

int stage_plain_layers(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.model.has_experts()) return 0;
  if (c.chunks == 1) {
    const int begin = layers_before(p, c, stage);
    return p.model.plain_layers(begin, begin + stage_layers(p, c, stage));
  }
  // L2: if the embedding counts as a layer, the first chunk has one layer less.
  const int parts = c.pipeline * c.chunks, each = (counted_layers(p, c) + parts - 1) / parts;
  const int embedding = c.counts_embedding ? 1 : 0;
  int plain = 0;
  for (int chunk = 0; chunk < c.chunks; ++chunk) {
    const int begin = (chunk * c.pipeline + stage) * each - embedding;
    const int end = std::min(begin + each, p.model.layers);
    if (begin < end) plain += p.model.plain_layers(std::max(begin, 0), end);
  }
  return plain;
}

int most_stage_layers(const PlanProblem& p, const Candidate& c) {
  if (!p.stage_layers.empty()) return *std::max_element(p.stage_layers.begin(), p.stage_layers.end());
  int most = 0;
  // The stages in between have no more layers than these four.
  for (const int stage : {0, 1, c.pipeline - 2, c.pipeline - 1})
    if (stage >= 0 && stage < c.pipeline) most = std::max(most, stage_layers(p, c, stage));
  return most;
}

int recomputed_of_chunk(const Candidate& c) {
  return (c.recompute_layers + c.chunks - 1) / c.chunks;
}

int recomputed_layers(const Candidate& c, int layers) {
  return c.recompute_layers == 0 ? layers : std::min(recomputed_of_chunk(c) * c.chunks, layers);
}

}  // namespace megalith
