#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// What a Judge returns: the value that a step minimises instead of the mean loss, and its derivatives with
/// respect to the samples' losses. A sample's loss is the sum of its token losses.
struct Judgement {
  double loss = 0;
  std::vector<double> weights = {};  // d(loss) / d(each sample's loss)
};
/// Computes the Judgement of one step. `losses`: the losses of the step's samples in order; `first`: the
/// number of the first of these samples in the source.
using Judge = std::function<Judgement(const SampleSource&, int64_t first, std::span<const double> losses)>;

}  // namespace megalith
