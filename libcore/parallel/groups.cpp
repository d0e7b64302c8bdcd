#include "libcore/parallel/groups.h"

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// The ranks that hold the same parameters, in rank order, so that context ranks are neighbours.
std::unique_ptr<Communicator> with_same_parameters(const Groups& groups) {
  Coord first = groups.at;
  first.data = first.context = 0;
  return groups.world.split({"data", GroupRole::kData}, groups.topology.rank(first), groups.world.rank());
}

/// The ranks that differ from this one along `axis` only, ordered by `place`.
std::unique_ptr<Communicator> along(const Groups& groups, const GroupName& name, Axis axis, int place) {
  Coord first = groups.at;
  switch (axis) {
    case Axis::kTensor:
      first.tensor = 0;
      break;
    case Axis::kContext:
      first.context = 0;
      break;
    case Axis::kData:
      first.data = 0;
      break;
    case Axis::kPipeline:
      first.pipeline = 0;
      break;
  }
  return groups.world.split(name, groups.topology.rank(first), place);
}

std::unique_ptr<Communicator> ends_of_pipeline(const Groups& groups) {
  Coord key = groups.at;
  if (groups.first_stage() || groups.last_stage()) key.pipeline = 0;
  return groups.world.split({"embedding", GroupRole::kEmbedding}, groups.topology.rank(key),
                            groups.at.pipeline);
}

}  // namespace

Groups::Groups(const Topology& sizes, Communicator& all)
    : world(all), topology(sizes), at(sizes.coord(all.rank())) {
  if (all.size() != sizes.world())
    fail(ErrorKind::kInternal, "groups of ", sizes.world(), " ranks in a world of ", all.size());
  tensor = along(*this, {"tensor", GroupRole::kTensor}, Axis::kTensor, at.tensor);
  data = with_same_parameters(*this);
  context = along(*this, {"context", GroupRole::kContext}, Axis::kContext, at.context);
  context_reversed =
      along(*this, {"context reversed", GroupRole::kContextReversed}, Axis::kContext, -at.context);
  forward = along(*this, {"pipeline forward", GroupRole::kPipelineForward}, Axis::kPipeline, at.pipeline);
  backward = along(*this, {"pipeline backward", GroupRole::kPipelineBackward}, Axis::kPipeline, at.pipeline);
  embedding = ends_of_pipeline(*this);
}

}  // namespace megalith
