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
  std::vector<RankPlace> places;  // of every rank
};

struct RankWorldOptions {
  Launch launch;
  Json options = Json::object();            // that all ranks have to agree on
  std::chrono::milliseconds meeting, wait;  // the longest for all to come, and for a peer from then on
};

/// Meets the other ranks (launch/rendezvous.h) and connects with them, on the interface that
/// GLOO_SOCKET_IFNAME names, else the one that routes to rank 0. Throws what join_rendezvous() and
/// make_process_comm() throw.
RankWorld enter_rank_world(const RankWorldOptions&);

}  // namespace megalith
