#pragma once

#include <string>

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The numbers of devices that a command gives, in all and per machine; 0: not given. `…_source` names the
/// source, for complaints: "--world-size 16", "WORLD_SIZE=16".
struct GivenWorld {
  int world = 0, local = 0;
  std::string world_source = {}, local_source = {};
};

/// The sizes from the command line, otherwise from --cluster's file, otherwise --nproc, otherwise from a
/// launcher's variables (launch/environment.h). Also takes the other values of the cluster's file that the
/// command line leaves open. kUsage when two sources contradict each other, kData for an invalid cluster
/// file.
GivenWorld take_world(PlanCommand&);

/// Takes the number of data-parallel ranks from --data-parallel-size or PlanCommand::data_ranks; does nothing
/// if neither is given. With a given world the number is fixed and the other sizes are searched. Without one,
/// the world is the number times the tensor, pipeline and context sizes, which are then all fixed (at 1 where
/// not given). kUsage when that is impossible, and when the two sources differ.
void take_data_ranks(PlanRequest&, GivenWorld&);

}  // namespace megalith
