#pragma once

#include <memory>

#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

struct DeviceCommOptions {
  bool in_rank_order = false;  // reductions give the same bits as those of `host`, and take longer
  bool rings = true;           // in pipelines the last place sends to the first one, as interleaved ones do
};

/// The communicator of the ranks of `host`, for tensors in the memory of their CUDA devices, over NCCL.
/// `host`, that of all processes or threads of the run, remains beside it: for exchange(), for names, for the
/// ids of NCCL's groups, and to find ranks that are lost; it and `backend` must outlive the result.
/// Collective.
///
/// Reductions are in NCCL's order and round 16-bit types at each rank, and a maximum may lose a NaN, unless
/// in_rank_order: their bits may differ from those of the host's communicator, and between versions and
/// settings of NCCL, but not between ranks. Calls of ranks that disagree are found at the timeout. send() and
/// recv() work in the groups of a pipeline only, and between neighbours: forward to the next place, backward
/// to the previous one, the last place's next being the first. Each direction between two neighbours is a
/// group of NCCL and a stream, so that neither waits for the other.
///
/// When a rank fails, is lost or does not come in time, all ranks end NCCL's work and throw what the host's
/// communicator would. Throws kDevice if libnccl is missing.
std::unique_ptr<Communicator> make_device_comm(Communicator& host, Backend& backend,
                                               const DeviceCommOptions& = {});

}  // namespace megalith
