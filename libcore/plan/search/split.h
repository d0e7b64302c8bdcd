#pragma once

#include <span>
#include <vector>

namespace megalith {

/// What a pipeline stage costs in addition to its layers, and how many layers it may hold.
struct StageLimit {
  double extra = 0;  // the head and the embedding, in units of one layer's time
  int most = 1 << 20;
};

/// The layers of each stage, at least one, that make the slowest stage as fast as possible. Among several
/// such splits: the one with the smallest sum of squared stage times, then the one with fewer layers on
/// earlier stages, which hold more microbatches. Exact. Empty when the limits allow no split.
std::vector<int> split_layers(int layers, std::span<const StageLimit> stages);

}  // namespace megalith
