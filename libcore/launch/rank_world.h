#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/launch/environment.h"
#include "libcore/launch/rank_place.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// All ranks of a run, as one of them sees it.
struct RankWorld {
  std::unique_ptr<Communicator> comm;
  std::vector<RankPlace> places;  // one for each rank
};

struct RankWorldOptions {
  Launch launch;
  Json options = Json::object();         // must be the same on all ranks
  std::chrono::milliseconds join, wait;  // longest waits: for all ranks to join, and later for a peer
};

/// Joins the rendezvous (launch/rendezvous.h) and connects to the other ranks, on the interface that
/// GLOO_SOCKET_IFNAME names, else on the one that routes to rank 0. Throws what join_rendezvous() and
/// make_process_comm() throw.
RankWorld enter_rank_world(const RankWorldOptions&);

}  // namespace megalith
