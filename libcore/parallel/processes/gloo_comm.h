#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "libcore/parallel/communicator.h"
#include "libcore/parallel/processes/mesh.h"

namespace megalith {

struct ProcessCommOptions {
  int rank = 0, size = 1;
  HostExchange exchange;          // called by all ranks alike; not needed any more on return
  std::string interface_address;  // IP address to bind to, which peers are told
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // the longest wait for a peer
  std::vector<std::string> rank_names = {};                      // "rank 3 on host a"; empty: "rank 3"
};

/// The communicator "world" of ranks that are processes, tensors in host memory, over Gloo's TCP connections,
/// which are neither encrypted nor authenticated. Collective. Results are those of run_thread_ranks(), bit
/// for bit. A peer whose process ends is noticed at once, one that stops when a wait for it reaches the
/// timeout; every rank then fails with kComm and names it. Destroyed by a rank that has not failed, the last
/// communicator of the run waits for the others to end, too, as long as the timeout. SIGPIPE is ignored from
/// then on where it had its default action: a dead peer must not end this process without a word.
///
/// Throws kDevice where Megalith was built without Gloo, or Gloo is not installed; kComm when a peer cannot
/// be reached.
std::unique_ptr<Communicator> make_process_comm(const ProcessCommOptions&);

/// Whether this build has Gloo's plugin, so that make_process_comm() can work.
bool has_process_comm();

}  // namespace megalith
