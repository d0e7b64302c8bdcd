#pragma once

#include <span>
#include <vector>

namespace megalith {

/// What a stage of a pipeline costs beside its layers, and how many it may hold.
struct StageLimit {
  double extra = 0;  // in units of one layer's time: the head, the embedding
  int most = 1 << 20;
};

/// Layers of each stage, at least one, so that the slowest stage is as fast as can be; of those the cut whose
/// sum of squares is least, and of those the one with fewer layers on earlier stages, which hold more
/// microbatches. Exact, by dynamic programming. Empty when the limits leave no cut.
std::vector<int> split_layers(int layers, std::span<const StageLimit> stages);

}  // namespace megalith
