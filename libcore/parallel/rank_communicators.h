#pragma once

#include <cstddef>
#include <vector>

#include "libcore/config/parallel_config.h"
#include "libcore/parallel/topology.h"

namespace megalith {

/// The communicators of NCCL that a rank opens (parallel/groups.h, parallel/devices/device_comm.h).
struct RankCommunicators {
  std::vector<int> groups;  // ranks of each group whose ranks call together
  /// Directions of links to a neighbour in the pipeline, to which this rank sends, or from which it receives;
  /// each is a communicator of two ranks.
  int sends = 0, receives = 0;

  size_t count() const { return groups.size() + static_cast<size_t>(sends + receives); }
};
RankCommunicators communicators_of(const ParallelConfig&, const Coord& at);
/// Whether the last stage of a pipeline sends to the first one, as in interleaved pipelines.
bool closes_ring(const ParallelConfig&);

}  // namespace megalith
