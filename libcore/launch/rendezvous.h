#pragma once

#include <chrono>
#include <string>

#include "libcore/json/json.h"
#include "libcore/launch/environment.h"
#include "libcore/parallel/processes/gloo_comm.h"

namespace megalith {

struct RendezvousOptions {
  Launch launch;
  Json options = Json::object();  // flat, as to_json() gives them; those that all ranks have to agree on
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // until all are there; and of each exchange
  std::string interface_name = {};  // GLOO_SOCKET_IFNAME: binds there; empty: the one that routes to rank 0
};

/// The ranks have found each other.
struct Rendezvous {
  HostExchange exchange;          // over connections with rank 0; kComm names who failed
  std::string interface_address;  // of this rank, for its other connections
};

/// Every rank of the job calls it. Rank 0 listens on the interface of launch.address alone and, until all are
/// there, takes ranks whose job token, version and number of ranks are its own, each once; whoever else comes
/// is refused, with one line in the log. Under torchrun, whose agent has the port, any port serves, and its
/// store says which. kComm names the ranks that did not come before the deadline, or rank 0; kUsage names
/// what this rank was refused for. A rank with other options ends all: every rank throws kUsage, which names
/// rank and option.
Rendezvous join_rendezvous(const RendezvousOptions&);

}  // namespace megalith
