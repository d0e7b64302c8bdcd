#pragma once

#include <optional>

#include "libcore/config/launch_config.h"
#include "libcore/launch/environment.h"
#include "libcore/launch/server_ranks.h"

namespace megalith {

/// What this process is; none of both: alone, with its ranks as threads.
struct LaunchPlan {
  std::optional<Launch> rank = {};         // one of several ranks
  std::optional<ServerRanks> server = {};  // who starts those of this server
  int world() const { return rank ? rank->world : server ? server->world : 0; }
};

/// From the options and the environment. `nproc`: --nproc as given, 0: not. kUsage when they contradict each
/// other, and what read_launch() and read_hostfile() throw.
LaunchPlan plan_launch(const LaunchConfig&, int nproc, const Environment&);

}  // namespace megalith
