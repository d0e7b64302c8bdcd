#pragma once

#include <string>

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The numbers of devices that a command gives, in all and per machine; 0: not given. world_source and
/// local_source name the source for complaints: "--world-size 16", "WORLD_SIZE=16".
struct GivenWorld {
  int world = 0, local = 0;
  std::string world_source = {}, local_source = {};
};

/// The sizes of the world from the first source that gives them: the command line, --cluster's file, --nproc,
/// a launcher's variables (launch/environment.h). Also takes the other values of the cluster's file that the
/// command line leaves open. kUsage when two sources contradict each other, kData for an invalid cluster
/// file.
GivenWorld take_world(PlanCommand&);

/// Takes the number of data-parallel ranks from --data-parallel-size or PlanCommand::data_ranks; does nothing
/// if neither is given. If the world is given, only this number is fixed, and the other sizes are searched.
/// Otherwise the tensor, pipeline and context sizes are fixed too (at 1 if not given), and the world is the
/// product of all four. kUsage when that is impossible, or when the two sources differ.
void take_data_ranks(PlanRequest&, GivenWorld&);

}  // namespace megalith
