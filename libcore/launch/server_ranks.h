#pragma once

#include <string>
#include <vector>

#include "libcore/io/run/stop_signal.h"

namespace megalith {

/// In the environment of a rank that run_server_ranks() started.
constexpr const char* kStartedHere = "MEGALITH_STARTED_RANK";

/// The ranks that a command starts on its server.
struct ServerRanks {
  int first = 0, count = 1, world = 1;  // ranks [first, first + count) of `world`
  std::string address = {};             // of rank 0
  int port = 0;
  std::string token = {};                 // of the job; empty: the ranks' environment says it, or none
  std::vector<std::string> devices = {};  // one a rank; empty: none was named
};

/// Runs `program` with `arguments` (its name first) once for each rank, told of its place by the variables
/// that torchrun sets, and waits for all. What `stop` is asked for is passed on, SIGINT as SIGTERM: a
/// terminal gives it to the ranks as well, and a second one would end them at once. When a rank fails, the
/// others have ten seconds to end by themselves. Returns 0, or the exit code of the first that failed; 75
/// when a signal ended it.
int run_server_ranks(const ServerRanks&, const std::string& program,
                     const std::vector<std::string>& arguments, const StopSignal& stop);

}  // namespace megalith
