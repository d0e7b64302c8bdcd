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

namespace {

/// How layers are divided among the stages for which no number is given: all but a first and a last stage
/// that have one. Each has `each` layers; those at the places from `more_from` up to `more_to` have one more.
struct EvenPart {
  int begin;  // the stage at place 0
  int each, more_from, more_to;
};

EvenPart even_part(const PlanProblem& p, const Candidate& c) {
  const int lead = c.first_layers > 0 ? 1 : 0, tail = c.last_layers > 0 ? 1 : 0;
  const int stages = c.pipeline - lead - tail, layers = p.model.layers - c.first_layers - c.last_layers;
  // The late stages take the extra layers, since they hold few microbatches. The pipeline's last stage takes
  // none, since it may have the head.
  const int end = stages - (tail > 0 ? 0 : 1);
  return {lead, layers / stages, end - layers % stages, end};
}

/// The number of layers of all stages before this one.
int layers_before(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.stage_layers.empty())
    return std::accumulate(p.stage_layers.begin(), p.stage_layers.begin() + stage, 0);
  if (stage == 0) return 0;
  if (stage == 1) return stage_layers(p, c, 0);
  const EvenPart even = even_part(p, c);
  const int places = stage - even.begin;
  return c.first_layers + even.each * places +
         std::clamp(places - even.more_from, 0, even.more_to - even.more_from);
}

}  // namespace

int stage_layers(const PlanProblem& p, const Candidate& c, int stage) {
  if (!p.stage_layers.empty()) return p.stage_layers[static_cast<size_t>(stage)];
  if (stage == 0 && c.first_layers > 0) return c.first_layers;
  if (stage == c.pipeline - 1 && c.last_layers > 0) return c.last_layers;
  const EvenPart even = even_part(p, c);
  const int place = stage - even.begin;
  return even.each + (place >= even.more_from && place < even.more_to ? 1 : 0);
}

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
