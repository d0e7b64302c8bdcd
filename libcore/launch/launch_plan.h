#pragma once

#include <optional>

#include "libcore/config/launch_config.h"
#include "libcore/launch/environment.h"
#include "libcore/launch/server_ranks.h"
#include "libcore/launch/socket.h"

namespace megalith {

/// What this process is. If neither member is set, it is the only process of the run, and the ranks are its
/// threads.
struct LaunchPlan {
  std::optional<Launch> rank = {};         // one of several ranks
  std::optional<ServerRanks> server = {};  // the process that starts the ranks of this server
  int world() const { return rank ? rank->world : server ? server->world : 0; }
};

/// Decides from the options and the environment. `nproc`: the value of --nproc, 0 if not given. If this
/// process is the only task of a launcher, it runs these ranks as threads. Hosts of --hostfile without an
/// address are looked up again until `deadline`, if this machine is none of the others. kUsage if options and
/// environment contradict each other; also throws what read_launch() and read_hostfile() throw.
LaunchPlan plan_launch(const LaunchConfig&, int nproc, const Environment&, Deadline deadline = {});

}  // namespace megalith
