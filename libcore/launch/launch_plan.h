#pragma once

#include <optional>

#include "libcore/config/launch_config.h"
#include "libcore/launch/environment.h"
#include "libcore/launch/server_ranks.h"

namespace megalith {

/// What this process is. If neither is set: a process alone, whose ranks are threads.
struct LaunchPlan {
  std::optional<Launch> rank = {};         // one of several ranks
  std::optional<ServerRanks> server = {};  // the process that starts the ranks of this server
  int world() const { return rank ? rank->world : server ? server->world : 0; }
};

/// Decides from the options and the environment. `nproc`: --nproc as given, 0 if not; the only task of a
/// launcher runs them as threads. kUsage if options and environment contradict each other; also throws what
/// read_launch() and read_hostfile() throw.
LaunchPlan plan_launch(const LaunchConfig&, int nproc, const Environment&);

}  // namespace megalith
