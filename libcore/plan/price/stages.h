#pragma once

#include <vector>

#include "libcore/plan/price/layer_price.h"
#include "libcore/plan/price/links.h"

namespace megalith {

/// The parts of a candidate's price that do not depend on recomputation and sharding: the kinds of stages
/// (the stages of a kind have equally many layers), the links between ranks, and the time to sum the gradient
/// of tied embeddings.
struct Layout {
  struct Kind {
    int stage = 0;  // the earliest stage of this kind: it holds the most microbatches
    int layers = 0;
    double times = 1;     // number of stages of this kind
    int plain = 0;        // number of layers without experts; 0 for a dense model
    LayerCost mean = {};  // mean cost of the layers, if only some of them have experts
    const LayerCost& layer(const LayerPrice& price) const { return plain > 0 ? mean : price; }
  };
  std::vector<Kind> kinds;
  Link data, message;  // the links between data ranks, and to the next stage
  Link expert_data;    // the link between ranks that hold the same experts
  double tied = 0;     // seconds to sum the gradient of tied embeddings
  double machine_doublings = 0;
};
Layout layout_of(const PlanProblem&, const Candidate&, const LayerPrice&);
/// The kind of one stage of the pipeline, with `times` 1.
Layout::Kind stage_kind(const PlanProblem&, const Candidate&, const LayerPrice&, int stage);

}  // namespace megalith
