#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "libcore/json/json.h"
#include "libcore/launch/environment.h"
#include "libcore/parallel/processes/gloo_comm.h"

namespace megalith {

struct RendezvousOptions {
  Launch launch;
  Json options = Json::object();  // flat, as to_json() gives them; must be the same on all ranks
  std::chrono::milliseconds timeout =
      std::chrono::minutes(10);     // for all ranks to join, and for each exchange
  size_t max_message = 0;           // of one rank in an exchange, in bytes; 0: 64 KiB plus 256 for each rank
  std::string interface_name = {};  // to bind to; empty: the one that routes to rank 0
};

/// The result of the rendezvous for one rank.
struct Rendezvous {
  HostExchange exchange;          // through rank 0; kComm names the rank that failed
  std::string interface_address;  // of this rank, for its other connections
};

/// Every rank of the job calls it. Rank 0 listens only on the interface of launch.address. Until all ranks
/// have joined, it admits each rank once if it has the same job token, job, version and number of ranks; any
/// other connection is refused (launch/admission.h). Both sides prove that they have the token
/// (launch/rank_channel.h), with the first message and each later one. A rank that rank 0 had no room for
/// tries again. Under torchrun, whose agent uses the port, rank 0 listens on any port and publishes it in the
/// agent's store.
///
/// kComm names the ranks that did not join before the deadline, or rank 0 if this rank did not reach it;
/// kUsage says why this rank was refused. If a rank's options differ, every rank throws kUsage, which names
/// that rank and the option.
Rendezvous join_rendezvous(const RendezvousOptions&);

}  // namespace megalith
