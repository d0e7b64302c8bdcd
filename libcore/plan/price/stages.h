#pragma once

#include <vector>

#include "libcore/plan/price/layer_price.h"
#include "libcore/plan/price/links.h"

namespace megalith {

/// Stages of a pipeline with equally many layers, and what else does not change while recomputation and
/// sharding are tried.
struct Layout {
  struct Kind {
    int stage = 0;  // the earliest of them: it holds the most microbatches
    int layers = 0;
    double times = 1;     // how many stages
    int plain = 0;        // the layers without experts, in a model that has some
    LayerCost mean = {};  // the mean of its layers, where they differ
    const LayerCost& layer(const LayerPrice& price) const { return plain > 0 ? mean : price; }
  };
  std::vector<Kind> kinds;
  Link data, message;  // of the data ranks, and to the next stage
  Link expert_data;    // of the ranks that hold the same experts
  double tied = 0;     // seconds for the gradient of tied embeddings
  double machine_doublings = 0;
};
Layout layout_of(const PlanProblem&, const Candidate&, const LayerPrice&);
/// One stage of the pipeline.
Layout::Kind stage_kind(const PlanProblem&, const Candidate&, const LayerPrice&, int stage);

}  // namespace megalith
