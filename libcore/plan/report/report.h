#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"
#include "libcore/plan/search/goal.h"
#include "libcore/plan/search/remedy.h"

namespace megalith {

/// The order of samples of the planned run, on each node.
struct NodeOrder {
  size_t bytes = 0;
  bool in_files = false;  // which the node's ranks map; false: in the memory of the run's process
};

/// Everything that is reported about a search: its result, and what was found out about the best plan.
struct Report {
  const PlanProblem& problem;
  const SearchResult& result;
  size_t columns = 0;                       // width to which lines are broken; 0: unlimited
  double gpu_hour = 0;                      // price of a device per hour; 0: unknown
  std::vector<TrainerAnswer> trainer = {};  // the trainer's answer for each plan
  std::vector<Sensitivity> sensitivities = {};
  std::vector<Plan> front = {};  // the Pareto front; empty: not requested
  std::optional<Inverse> inverse = {};
  std::optional<Goal> goal = {};
  Scaling scaling = {};                 // the numbers of devices that meet the goal
  std::optional<NodeOrder> order = {};  // nothing: not known
  std::optional<Remedy> remedy = {};    // the change that makes the search's missed or closest plan fit
};

/// Whether what ranks exchange in plan 1 is counted (price/traffic.h): our trainer runs it, and trains the
/// model's own parameters.
inline bool counts_traffic(const Report& r) {
  return r.trainer.front().refusal.empty() && !r.problem.tuning.adapts();
}

}  // namespace megalith
