#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// The value that is minimised instead of the mean loss. It is a function of the samples' losses; a sample's
/// loss is the sum of its token losses.
struct Judgement {
  double loss = 0;
  std::vector<double> weights = {};  // d(loss) / d(each sample's loss)
};
/// Judges one step. `losses` are the losses of its samples in order; `first` is the number of the first one
/// in the source.
using Judge = std::function<Judgement(const SampleSource&, int64_t first, std::span<const double> losses)>;

}  // namespace megalith
