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
  HostExchange exchange;          // collective; used only until make_process_comm() returns
  std::string interface_address;  // IP address to bind to; the peers connect to it
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // the longest wait for a peer
  std::vector<std::string> rank_names = {};                      // "rank 3 on host a"; empty: "rank 3"
};

/// Creates the communicator "world" of ranks that are processes, with tensors in host memory, over Gloo's TCP
/// connections, which are neither encrypted nor authenticated. Collective. Results are the same as with
/// run_thread_ranks(), bit for bit.
///
/// When a peer's process ends, the others notice at once; when a peer hangs, they notice after the timeout.
/// Every rank then fails with kComm and names the peer. On a rank that has not failed, the destructor of the
/// run's last communicator waits for the other ranks to end, at most as long as the timeout. If SIGPIPE has
/// its default action, it is ignored from then on: a dead peer must not kill this process without a message.
///
/// Throws kDevice if Megalith was built without Gloo or Gloo is not installed, kComm if a peer cannot be
/// reached.
std::unique_ptr<Communicator> make_process_comm(const ProcessCommOptions&);

/// Whether this build has Gloo's plugin, which make_process_comm() needs.
bool has_process_comm();

}  // namespace megalith
