#pragma once

#include <vector>

#include "libcore/config/parallel_config.h"

namespace megalith {

/// The axes of the grid of ranks, in Megatron's order tp-cp-ep-dp-pp (megatron/core/parallel_state.py):
/// tensor ranks are neighbours, pipeline ranks farthest apart. Expert ranks are a cut of the data ranks, so
/// they need no axis of their own.
enum class Axis { kTensor, kContext, kData, kPipeline };

struct Coord {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
  bool operator==(const Coord&) const = default;
};

/// Who works with whom: pure arithmetic over the sizes, so that tests and the planner use it without a
/// network.
class Topology {
 public:
  /// kUsage when world is not a multiple of tensor * pipeline * context.
  Topology(const ParallelConfig& sizes, int world);

  int world() const { return tensor_ * context_ * data_ * pipeline_; }
  int size(Axis) const;
  Coord coord(int rank) const;
  int rank(const Coord&) const;

  /// The ranks that differ from `rank` in these axes only, itself included, ascending.
  std::vector<int> group(int rank, const std::vector<Axis>& axes) const;

 private:
  int tensor_, context_, data_, pipeline_;
};

}  // namespace megalith
