#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// What is minimised instead of the mean loss, as a function of each sample's loss: the sum of its token
/// losses.
struct Judgement {
  double loss = 0;
  std::vector<double> weights = {};  // d(loss) / d(each sample's loss)
};
/// `losses` are those of one step's samples in order, beginning with number `first` of the source.
using Judge = std::function<Judgement(const SampleSource&, int64_t first, std::span<const double> losses)>;

}  // namespace megalith
