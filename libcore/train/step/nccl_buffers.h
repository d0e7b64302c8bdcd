#pragma once

#include <cstddef>
#include <cstdint>

#include "libcore/config/parallel_config.h"
#include "libcore/parallel/topology.h"

namespace megalith {

/// What decides how much memory of a device NCCL takes for its messages: the channels of a communicator, and
/// for each of NCCL's three protocols the bytes of the buffer at the receiving end of a channel. The defaults
/// of the buffers are those of NCCL 2.28 (src/init.cc). That of the channels is an assumption: NCCL chooses
/// them by the links between the devices, and takes 64 at most.
struct NcclSizes {
  int64_t channels = 32;
  int64_t ll = int64_t{512} << 10, ll128 = int64_t{4800} << 10, simple = int64_t{4} << 20;
  /// Whether a communicator may have calls after a graph with calls of it. Else NCCL does not guarantee the
  /// results, whatever the streams wait for (its documentation of NCCL_GRAPH_MIXING_SUPPORT).
  bool mixes_graphs = true;
};
/// The sizes with the variables of this process: NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS, NCCL_MIN_NCHANNELS,
/// NCCL_MIN_CTAS, NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE, NCCL_BUFFSIZE. Those that are no positive numbers do
/// not count. NCCL_GRAPH_MIXING_SUPPORT=0 sets mixes_graphs to false.
NcclSizes nccl_sizes_here();

/// Bytes of a device that NCCL takes for the connections of a rank's communicators, if all ranks reach each
/// other over the links of one machine and each communicator uses one algorithm. Not measured.
size_t nccl_bytes(const ParallelConfig&, const Coord& at, const NcclSizes&);

}  // namespace megalith
