#include "libcore/launch/rank_world.h"

#include <cstdlib>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/launch/rendezvous.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/processes/gloo_comm.h"

namespace megalith {
namespace {

constexpr size_t kMaxHost = 255;  // bytes in a message

}  // namespace

RankWorld enter_rank_world(const RankWorldOptions& options) {
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  const Rendezvous rendezvous = join_rendezvous({.launch = options.launch,
                                                 .options = options.options,
                                                 .timeout = options.join,
                                                 .interface_name = interface ? interface : ""});
  RankWorld world;
  std::vector<std::string> names;
  world.places = exchange_values(rendezvous.exchange,
                                 this_place(rendezvous.interface_address, options.launch.local_rank));
  for (RankPlace& place : world.places) {
    place.host = printable(place.host, kMaxHost);
    place.address = printable(place.address, kMaxHost);
  }
  for (size_t rank = 0; rank < world.places.size(); ++rank)
    names.push_back(concat("rank ", rank, " on ", world.places[rank].host));
  world.comm = make_process_comm({.rank = options.launch.rank,
                                  .size = options.launch.world,
                                  .exchange = rendezvous.exchange,
                                  .interface_address = rendezvous.interface_address,
                                  .timeout = options.wait,
                                  .rank_names = names});
  return world;
}

}  // namespace megalith
