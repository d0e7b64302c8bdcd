#pragma once

#include <vector>

#include "libcore/plan/price/layer_price.h"
#include "libcore/plan/price/links.h"

namespace megalith {

/// The parts of a candidate's price that do not change while recomputation and sharding are tried: the kinds
/// of stages (a kind has equally many layers), the links, and the sum of tied embeddings.
struct Layout {
  struct Kind {
    int stage = 0;  // the earliest stage of this kind: it holds the most microbatches
    int layers = 0;
    double times = 1;     // number of stages of this kind
    int plain = 0;        // the layers without experts; 0 for a dense model
    LayerCost mean = {};  // mean cost of a layer if only some have experts
    const LayerCost& layer(const LayerPrice& price) const { return plain > 0 ? mean : price; }
  };
  std::vector<Kind> kinds;
  Link data, message;  // between data ranks, and to the next stage
  Link expert_data;    // between the ranks that hold the same experts
  double tied = 0;     // seconds to sum the gradient of tied embeddings
  double machine_doublings = 0;
};
Layout layout_of(const PlanProblem&, const Candidate&, const LayerPrice&);
/// One stage of the pipeline.
Layout::Kind stage_kind(const PlanProblem&, const Candidate&, const LayerPrice&, int stage);

}  // namespace megalith
