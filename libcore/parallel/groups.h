#pragma once

#include <memory>

#include "libcore/parallel/communicator.h"
#include "libcore/parallel/topology.h"

namespace megalith {

/// The groups that one rank works in, cut out of the world in the same order on every rank, because each cut
/// is collective. Each is used by one stream at a time.
struct Groups {
  /// Collective: every rank of `world` calls it. kInternal when the topology is of another size.
  Groups(const Topology& sizes, Communicator& all);

  Communicator& world;  // not owned
  Topology topology;
  Coord at;  // of this rank
  std::unique_ptr<Communicator> tensor;
  /// The ranks that hold the same parameters: of the data and the context axis, since both compute gradients
  /// of them.
  std::unique_ptr<Communicator> data;
  /// The ranks that share a sequence, in their order and in the opposite one, because ContextRegion gathers
  /// first chunks in the one and second chunks in the other.
  std::unique_ptr<Communicator> context, context_reversed;
  /// The pipeline's ranks, twice: activations go forward on one, their gradients backward on the other, so
  /// that each link is first in, first out.
  std::unique_ptr<Communicator> forward, backward;
  /// First and last pipeline rank, because both hold a tied word embedding; alone on all others.
  std::unique_ptr<Communicator> embedding;

  bool first_stage() const { return at.pipeline == 0; }
  bool last_stage() const { return at.pipeline + 1 == topology.size(Axis::kPipeline); }
};

}  // namespace megalith
