#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/train/data/data_set.h"

namespace megalith {

/// What is minimised in place of the mean loss, as a function of the samples' own losses: the sum of each
/// one's token losses.
struct Judgement {
  double loss = 0;
  std::vector<double> weights = {};  // d(loss) / d(a sample's loss), of each
};
/// `losses` are those of the samples of one step, which begin at number `first` of the source, in their
/// order.
using Judge = std::function<Judgement(const SampleSource&, int64_t first, std::span<const double> losses)>;

}  // namespace megalith
