#pragma once

#include <memory>

#include "libcore/parallel/communicator.h"
#include "libcore/parallel/topology.h"

namespace megalith {

/// The groups that one rank works in. A split is collective, so every rank makes the groups in the same
/// order. Each group is used by one stream at a time.
struct Groups {
  /// Collective: every rank of `all` calls it. kInternal when `sizes` is for another number of ranks.
  Groups(const Topology& sizes, Communicator& all);

  Communicator& world;  // not owned
  Topology topology;
  Coord at;  // of this rank
  std::unique_ptr<Communicator> tensor;
  /// The ranks that hold the same parameters: those along the data and the context axes. All of them compute
  /// gradients of these parameters.
  std::unique_ptr<Communicator> data;
  /// The ranks that share a sequence, in rank order and in reverse. ContextRegion gathers first chunks with
  /// one and second chunks with the other.
  std::unique_ptr<Communicator> context, context_reversed;
  /// Two groups of the pipeline's ranks: activations travel on `forward`, their gradients on `backward`. So
  /// each link carries one kind of message, first in, first out.
  std::unique_ptr<Communicator> forward, backward;
  /// The first and the last rank of the pipeline, which both hold a tied word embedding. On every other rank
  /// it is a group of one.
  std::unique_ptr<Communicator> embedding;

  bool first_stage() const { return at.pipeline == 0; }
  bool last_stage() const { return at.pipeline + 1 == topology.size(Axis::kPipeline); }
};

}  // namespace megalith
