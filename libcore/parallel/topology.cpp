#include "libcore/parallel/topology.h"

#include <algorithm>

#include "libcore/base/error.h"

namespace megalith {

Topology::Topology(const ParallelConfig& sizes, int world)
    : tensor_(sizes.tensor),
      context_(sizes.context),
      data_(world / sizes.model_ranks()),
      pipeline_(sizes.pipeline) {
  if (world < 1 || world % sizes.model_ranks() != 0)
    fail(ErrorKind::kUsage, world, " ranks are not a multiple of tensor ", tensor_, " * pipeline ", pipeline_,
         " * context ", context_, " = ", sizes.model_ranks());
}

int Topology::size(Axis axis) const {
  switch (axis) {
    case Axis::kTensor:
      return tensor_;
    case Axis::kContext:
      return context_;
    case Axis::kData:
      return data_;
    case Axis::kPipeline:
      return pipeline_;
  }
  return 1;
}

Coord Topology::coord(int rank) const {
  Coord at;
  at.tensor = rank % tensor_;
  rank /= tensor_;
  at.context = rank % context_;
  rank /= context_;
  at.data = rank % data_;
  at.pipeline = rank / data_;
  return at;
}

int Topology::rank(const Coord& at) const {
  return ((at.pipeline * data_ + at.data) * context_ + at.context) * tensor_ + at.tensor;
}

std::vector<int> Topology::group(int rank, const std::vector<Axis>& axes) const {
  const auto varies = [&](Axis axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  const Coord mine = coord(rank);
  std::vector<int> ranks;
  for (int other = 0; other < world(); ++other) {
    const Coord at = coord(other);
    if ((varies(Axis::kTensor) || at.tensor == mine.tensor) &&
        (varies(Axis::kContext) || at.context == mine.context) &&
        (varies(Axis::kData) || at.data == mine.data) &&
        (varies(Axis::kPipeline) || at.pipeline == mine.pipeline))
      ranks.push_back(other);
  }
  return ranks;
}

}  // namespace megalith
