#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/plan/price/candidate.h"

namespace megalith {

/// What ranks give to the calls of a kind of group. A gather or a scatter counts the tensor of all ranks, a
/// message counts at its sender.
struct GroupTraffic {
  std::string group;  // "tensor", "data", "pipeline forward", … (parallel/groups.h)
  int64_t calls = 0, bytes = 0;
};

/// What one rank of each pipeline stage gives to its groups in a step of this version's trainer, added up, by
/// closed forms: from the sizes of the model and of the layout alone. It is the first along the other axes;
/// in rank order (PlanProblem::rank_order) the last one may send less. Groups of one rank are left out. The
/// trainer must be able to run the plan (ask_trainer()). --simulate counts the same in a dry run.
std::vector<GroupTraffic> step_traffic(const PlanProblem&, const Candidate&);

}  // namespace megalith
