#pragma once

#include <string>
#include <vector>

#include "libcore/io/run/stop_signal.h"

namespace megalith {

/// Set in the environment of a rank that run_server_ranks() started.
constexpr const char* kStartedHere = "MEGALITH_STARTED_RANK";

/// The ranks that a command starts on its server.
struct ServerRanks {
  int first = 0, count = 1, world = 1;  // ranks [first, first + count) of `world`
  std::string address = {};             // of rank 0
  int port = 0;
  std::string token = {};                 // of the job; empty: the ranks inherit this process's token, if any
  std::vector<std::string> devices = {};  // one for each rank; empty if no devices were named
};

/// Runs `program` with `arguments` (its name first) once for each rank, tells each its place with the
/// variables that torchrun sets, and waits for all. Signals that `stop` receives are passed on, SIGINT as
/// SIGTERM: a terminal sends SIGINT to the ranks as well, and a second one would end them at once. If a rank
/// fails, the others get ten seconds to end. Returns 0, or the exit code of the first rank that failed; 75 if
/// a signal ended it.
int run_server_ranks(const ServerRanks&, const std::string& program,
                     const std::vector<std::string>& arguments, const StopSignal& stop);

}  // namespace megalith
