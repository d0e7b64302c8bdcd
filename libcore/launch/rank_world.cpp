#include "libcore/launch/rank_world.h"

#include <cstdlib>
#include <string>

#include "libcore/base/error.h"
#include "libcore/launch/rendezvous.h"
#include "libcore/parallel/processes/gloo_comm.h"

namespace megalith {

RankWorld enter_rank_world(const RankWorldOptions& options) {
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  const Meeting meeting = meet({.launch = options.launch,
                                .options = options.options,
                                .timeout = options.meeting,
                                .interface_name = interface ? interface : ""});
  RankWorld world;
  std::vector<std::string> names;
  for (const std::string& bytes : meeting.exchange(encode_place(this_place(meeting.interface_address)))) {
    names.push_back(concat("rank ", world.places.size(), " on ", decode_place(bytes).host));
    world.places.push_back(decode_place(bytes));
  }
  world.comm = make_process_comm({.rank = options.launch.rank,
                                  .size = options.launch.world,
                                  .exchange = meeting.exchange,
                                  .interface_address = meeting.interface_address,
                                  .timeout = options.wait,
                                  .rank_names = names});
  return world;
}

}  // namespace megalith
