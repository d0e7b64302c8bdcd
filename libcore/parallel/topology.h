#pragma once

#include <vector>

#include "libcore/config/parallel_config.h"

namespace megalith {

/// The axes of the grid of ranks, in Megatron's order tp-cp-ep-dp-pp (megatron/core/parallel_state.py):
/// tensor ranks are neighbours, pipeline ranks are farthest apart. Expert ranks are a subdivision of the data
/// ranks and need no axis.
enum class Axis { kTensor, kContext, kData, kPipeline };

struct Coord {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
  bool operator==(const Coord&) const = default;
};

/// Which ranks work together. Pure arithmetic on the sizes: tests and the planner use it without a network.
class Topology {
 public:
  /// kUsage if `world` is not a multiple of tensor * pipeline * context.
  Topology(const ParallelConfig& sizes, int world);

  int world() const { return tensor_ * context_ * data_ * pipeline_; }
  int size(Axis) const;
  Coord coord(int rank) const;
  int rank(const Coord&) const;

  /// The ranks that differ from `rank` in these axes only, `rank` included, ascending.
  std::vector<int> group(int rank, const std::vector<Axis>& axes) const;

 private:
  int tensor_, context_, data_, pipeline_;
};

}  // namespace megalith
