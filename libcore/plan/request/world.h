#pragma once

#include <string>

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The devices that a command is about, as far as they were given; 0: not given. `…_source` names the source,
/// for complaints: "--world-size 16", "WORLD_SIZE=16".
struct GivenWorld {
  int world = 0, local = 0;
  std::string world_source = {}, local_source = {};
};

/// The sizes from the command line, otherwise from --cluster's file, otherwise --nproc, otherwise from a
/// launcher's variables (launch/environment.h). Also takes from the cluster's file what else the command line
/// leaves open. kUsage when two of them contradict each other, kData for an invalid cluster file.
GivenWorld take_world(PlanCommand&);

/// --data-parallel-size, or PlanCommand::data_ranks, which counts the same ranks: if one is given, the other
/// sizes are searched with it. If no world was given, the data ranks determine one together with the sizes
/// that the command line has or leaves at 1, and those are then all fixed. kUsage when that is impossible,
/// and when the two differ.
void take_data_ranks(PlanRequest&, GivenWorld&);

}  // namespace megalith
