#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/io/streams/stop_signal.h"

namespace megalith {

/// Set in the environment of a rank that run_server_ranks() started, to the number of its start: 1, and more
/// after restarts.
constexpr const char* kStartedHere = "MEGALITH_STARTED_RANK";

/// The ranks that a command starts on its server.
struct ServerRanks {
  int first = 0, count = 1, world = 1;  // ranks [first, first + count) of `world`
  std::string address = {};             // of rank 0
  int port = 0;
  bool any_port = false;                  // `port` was free, and nobody named it: a restart takes another
  std::string token = {};                 // of the job; empty: the ranks inherit this process's token, if any
  std::vector<std::string> devices = {};  // one for each rank; empty if no devices were named
};

/// Exit code of a rank that was told to stop. Only the command that started it sees this code.
constexpr int kStoppedRank = 79;

/// What each rank runs.
struct RankCommand {
  std::string program;
  std::vector<std::string> arguments;  // its name first
  int start = 1;                       // the number of this start
  /// A rank that is stopped (SIGSTOP, not a debugger's stop) for longer than this many seconds is killed;
  /// nothing: it may stay stopped.
  std::optional<double> stop_limit = {};
};

/// How the ranks of a server ended.
struct RankEnds {
  /// 0, or the exit code of the first rank that failed; 75 (also of a rank that a signal ended) only if no
  /// rank has another code, since the others of a rank that fails end with it, and may do so first.
  int code = 0;
  bool stopped = false;  // a rank was told to stop
  int refusal = 0;       // an exit code from 64 to 66, if a rank has one: the same command ends so again
};

/// Runs the command once for each rank, tells each its place with the variables that torchrun sets, and waits
/// for all. Signals that `stop` receives are passed on, SIGINT as a SIGTERM that says so: a terminal sends
/// SIGINT to the ranks as well, and a second one would end them at once. If a rank fails, the others get ten
/// seconds to end.
RankEnds run_server_ranks(const ServerRanks&, const RankCommand&, const StopSignal& stop);

}  // namespace megalith
