#pragma once

#include "libcore/plan/price/layer_price.h"
#include "libcore/plan/price/links.h"

namespace megalith {

// What ranks exchange for one microbatch, in closed form. Times (layer_price.cpp) and counts (traffic.h) read
// it.

/// Bytes of whole tensors: of all ranks of the group that exchanges them.
struct ExchangedTensors {
  double hidden = 0;       // hidden states of a context rank's positions, [s / cp, b, h]
  double message = 0;      // their rows on one tensor rank, as a pipeline stage sends them
  double keys_values = 0;  // a layer's keys and values, [s, b, 2, width of a tensor rank's keys]
};
ExchangedTensors exchanged_tensors(const PlanProblem&, const LayerShape&);

/// How often a tensor group exchanges hidden states in one pass: by sums, or, with sequence parallelism, by
/// gathers and scatters.
struct TensorCalls {
  double sums = 0, gathers = 0, scatters = 0;
  double again = 0;  // of the gathers: those of inputs that the forward pass has gathered before

  /// Gathers and scatters, of which a sum has two.
  double halves() const { return kHalvesOfAllReduce * sums + gathers + scatters; }
  /// Calls that add what the ranks have.
  double reductions() const { return sums + scatters; }
  TensorCalls& operator+=(const TensorCalls&);
};
TensorCalls operator*(double times, const TensorCalls&);

/// The calls of a layer whose tensor ranks enclose `blocks` blocks: attention, and what every token passes
/// after it.
TensorCalls layer_calls(bool sequence, double blocks, bool forward);
/// Those of the embedding, or of the head, both passes together: the embedding's rows are summed over the
/// parts of its table, and so are the gradients of the head's input.
TensorCalls end_calls(bool sequence);

}  // namespace megalith
