#pragma once

#include <string>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Where a rank runs, as far as its device depends on it.
struct DevicePlace {
  int number = 0;            // among the ranks of its machine
  bool own_process = false;  // whether it is the only rank of its process
  std::string machine = {};  // equal for processes of one machine
  std::string host = {};     // for messages; empty: ranks are threads
};

/// The number of this rank's CUDA device: its own number, or 0 where its process sees one device alone.
/// Collective. All ranks throw kDevice if a machine has fewer devices than ranks, or if two ranks have the
/// same device.
int device_of_rank(Communicator& world, const DevicePlace&);

}  // namespace megalith
