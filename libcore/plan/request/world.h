#pragma once

#include <string>

#include "libcore/plan/request/plan_request.h"

namespace megalith {

/// The devices that a command is about, as far as they were told; 0: not told. `…_source` says by what, for
/// complaints: "--world-size 16", "WORLD_SIZE=16".
struct GivenWorld {
  int world = 0, local = 0;
  std::string world_source = {}, local_source = {};
};

/// The sizes of the command line, else of --cluster's file, else --nproc, else of a launcher's variables
/// (launch/environment.h). Takes from the cluster's file also what else the command line leaves open. kUsage
/// when two of them contradict each other, kData for a cluster's file that says something else.
GivenWorld take_world(PlanCommand&);

/// --data-parallel-size, or PlanCommand::data_ranks, which counts the same ranks: where one is given, the
/// other sizes are searched with it. Where no world was told, it makes one with the sizes that the
/// command line has or leaves at 1, and those are then all fixed. kUsage when it cannot be, and when the two
/// differ.
void take_data_ranks(PlanRequest&, GivenWorld&);

}  // namespace megalith
