#pragma once

#include <memory>
#include <string>

#include "libcore/config/pretrain_config.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// Where a rank runs, as far as its device depends on it.
struct DevicePlace {
  int number = 0;            // among the ranks of its machine
  bool own_process = false;  // whether it is the only rank of its process
  std::string machine = {};  // equal for processes of one machine
  std::string host = {};     // for messages; empty: ranks are threads
};

/// What a rank computes with.
struct RankDevice {
  std::unique_ptr<Backend> backend;
  /// Joins the devices of all ranks; null if the ranks' own communicator takes their tensors, as on the CPU,
  /// on a device that threads share, and for one rank.
  std::unique_ptr<Communicator> world = nullptr;
  int sharers = 1;  // ranks that have this device
};

/// Whether ranks that are threads share one device: CUDA_VISIBLE_DEVICES names it, and no other.
bool threads_share_device();

/// How many of a run's ranks, which are threads of this process and have a CUDA device each or all the same
/// one, have the first device. Throws kDevice if there are fewer devices than ranks, and kUsage if too many
/// would share one.
int ranks_of_first_device(int ranks);

/// Opens --device as make_backend() does; for several ranks on CUDA, each rank's own device: that of its
/// number, or the only one that its process sees; or the one that all share (threads_share_device()).
/// Collective. All ranks throw kDevice if a machine has fewer devices than ranks, or if two processes have
/// the same device, and kUsage if too many threads share one. `world` must outlive the result.
RankDevice open_rank_device(Communicator& world, const DevicePlace&, const PretrainConfig&);

}  // namespace megalith
